//go:build clients

package clients

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/servers"
)

// TestMiddlewareSidecar runs the service of examples/http/sidecar beside its sidecar, and then without.
func TestMiddlewareSidecar(t *testing.T) {
	folder, err := os.MkdirTemp("", "sidecar") // the path of a socket is short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	socket := filepath.Join(folder, "s")
	sidecar, err := servers.StartLimitgate(filepath.Join(built, "limitgate"), "--http", "unix:"+socket, "--limits", "../examples/http/sidecar/policy.json", "--retry-jitter", "0")
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	_ = l.Close()
	service := exec.Command("python3", "../examples/http/sidecar/service.py", port, socket)
	if err := service.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = service.Process.Kill()
		_ = service.Wait()
	}()
	asked := 0
	ask := func() (code int, again string) {
		asked++
		a, err := http.Post(fmt.Sprintf("http://%s/login?n=%d", addr, asked), "text/plain", nil) // the query is not in the op
		if err != nil {
			return 0, ""
		}
		defer func() { _ = a.Body.Close() }()
		_, _ = io.Copy(io.Discard, a.Body)
		return a.StatusCode, a.Header.Get("Retry-After")
	}
	counted := map[string]int{}
	for end := time.Now().Add(20 * time.Second); len(counted) < 2 && time.Now().Before(end); {
		if code, again := ask(); code != 0 {
			counted[fmt.Sprintf("%d, with Retry-After %t", code, again != "")]++
		}
	}
	if counted["200, with Retry-After false"] != 5 || counted["429, with Retry-After true"] != 1 {
		t.Errorf("answers %v, want 5 and a denial", counted)
	}
	if err := sidecar.Close(); err != nil {
		t.Fatal(err)
	}
	if code, _ := ask(); code != http.StatusOK {
		t.Errorf("without its sidecar the service answers %d", code)
	}
}
