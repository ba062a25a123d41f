package clients

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestMiddlewareQuick runs the tests of the middleware for Go, which needs no other language.
func TestMiddlewareQuick(t *testing.T) {
	limits, err := os.ReadFile("node/express/test/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	p := start(t, string(limits), "--http", "127.0.0.1:0", "--retry-jitter", "0")
	defer func() { _ = p.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-race", "-count=1", "./...")
	cmd.Dir = "go/middleware"
	cmd.Env = append(os.Environ(), "LIMITGATE="+p.Addr, "LIMITGATE_URL=http://"+p.HTTP)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
