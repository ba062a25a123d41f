//go:build clients

package clients

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// middlewareTests are the commands that test middleware, each in its folder. They find a limitgate
// with the limits of clients/node/express/test by LIMITGATE and LIMITGATE_URL.
var middlewareTests = []struct {
	name, folder string
	command      []string
}{
	{"go", "go/middleware", []string{"go", "test", "-race", "-count=1", "./..."}},
	{"express", "../.cache/clients/express", []string{"node", "--test", "--test-reporter=spec", "middleware.test.mjs", "graphql.test.mjs"}},
	{"python", "python/limitgate_middleware", []string{"/usr/bin/python3", "-B", "-m", "unittest", "discover"}},
	{"rack", "ruby/limitgate-rack", []string{"ruby", "-W1", "-Ilib", "-Itest", "-e", "Dir['test/*_test.rb'].each { |file| require './' + file }"}},
	{"types", "../.cache/clients/express", []string{"node", "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext", "--moduleResolution", "nodenext", "types.ts"}},
}

// TestMiddleware runs the tests of all middleware.
func TestMiddleware(t *testing.T) {
	limits, err := os.ReadFile("node/express/test/limits.yaml")
	if err != nil {
		t.Fatal(err)
	}
	copyExpress(t)
	for _, m := range middlewareTests {
		t.Run(m.name, func(t *testing.T) {
			p := start(t, string(limits), "--http", "127.0.0.1:0", "--retry-jitter", "0")
			defer func() { _ = p.Close() }()
			ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, m.command[0], m.command[1:]...)
			cmd.Dir = m.folder
			cmd.Env = append(os.Environ(), "LIMITGATE="+p.Addr, "LIMITGATE_URL=http://"+p.HTTP)
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}

// copyExpress copies the package for Express and its tests to the packages that they need.
func copyExpress(t *testing.T) {
	t.Helper()
	const to = "../.cache/clients/express"
	if _, err := os.Stat(filepath.Join(to, "node_modules")); err != nil {
		t.Fatalf("%v: scripts/provision.sh clients gets them", err)
	}
	for _, step := range [][]string{
		{"rm", "-rf", to + "/node_modules/limitgate-express"},
		{"cp", "-r", "node/express", to + "/node_modules/limitgate-express"},
		{"rm", "-rf", to + "/node_modules/limitgate-express/test"},
		{"cp", "-r", "node/express/test/.", to},
	} {
		if out, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", step, err, out)
		}
	}
}
