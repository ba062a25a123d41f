package clients

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// quickRows need only Go and redis-cli.
func quickRows() []row {
	driver := func(name string) []string { return []string{filepath.Join(built, name)} }
	return []row{
		{client: "go-redis", settings: "default", command: driver("goredis"), single: true, cluster: true},
		{client: "go-redis", settings: "RESP2", command: driver("goredis"), resp: "2", single: true, cluster: true},
		{client: "redis-cli", settings: "`--raw`", command: driver("rediscli"), more: []string{"--raw"}, single: true, cluster: true},
		{client: "redis-cli", settings: "`--json`", command: driver("rediscli"), more: []string{"--json"}, single: true, cluster: true},
		{client: "redis-cli", settings: "`-3`", command: driver("rediscli"), resp: "3", single: true, cluster: true},
		{client: "redis-cli", settings: "`--pipe`", command: driver("redispipe"), single: true},
		{client: "redis-benchmark", settings: "default", command: driver("redisbenchmark"), single: true},
		{client: "redis-benchmark", settings: "`-3`", command: driver("redisbenchmark"), resp: "3", single: true},
		{client: "lines typed into a socket", settings: "", command: driver("inline"), single: true},
	}
}

// build builds Go drivers.
func build(tb testing.TB, packages ...string) {
	tb.Helper()
	cmd := exec.Command("go", append([]string{"build", "-o", built}, packages...)...)
	cmd.Dir = "go"
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build the drivers: %v\n%s", err, out)
	}
}

func TestQuick(t *testing.T) {
	build(t, "./goredis", "./rediscli", "./redispipe", "./redisbenchmark", "./inline")
	for _, r := range quickRows() {
		for _, mode := range r.modes() {
			t.Run(r.client+" "+r.settings+" "+mode, func(t *testing.T) {
				for _, problem := range drive(t, r, mode).wrong() {
					t.Error(problem)
				}
			})
		}
	}
}
