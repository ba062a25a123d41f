package clients

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
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
	build(t, quickDrivers...)
	for _, r := range quickRows() {
		for _, mode := range r.modes() {
			t.Run(r.client+" "+r.settings+" "+mode, func(t *testing.T) { mustPass(t, r, mode, plainAccess()) })
		}
	}
}

// quickDrivers are the packages of the drivers of quickRows.
var quickDrivers = []string{"./goredis", "./rediscli", "./redispipe", "./redisbenchmark", "./inline"}

func mustPass(t *testing.T, r row, mode string, a access) {
	for _, problem := range drive(t, r, mode, a).wrong() {
		t.Error(problem)
	}
}

// TestQuickSecure runs the same clients with the settings of production.
func TestQuickSecure(t *testing.T) {
	build(t, quickDrivers...)
	p := newProduction(t)
	for _, r := range quickRows() {
		r = r.secured()
		for _, mode := range r.modes() {
			t.Run(r.client+" "+r.settings+" "+mode, func(t *testing.T) { mustPass(t, r, mode, p.byPassword(r)) })
		}
		t.Run(r.client+" "+r.settings+" certificate", func(t *testing.T) { mustPass(t, r, "single", p.byCertificate()) })
	}
	testRefusals(t, p)
}

// testRefusals fails if the proxy takes a client with wrong credentials. It uses the client that
// does not connect again.
func testRefusals(t *testing.T, p *production) {
	bare := row{command: []string{filepath.Join(built, "inline")}}
	cert, key := p.store.Issue("driver", time.Now().Add(time.Hour))
	for name, c := range map[string]struct {
		changes []string // of the right credentials
		want    string
	}{
		"a wrong password":      {[]string{"CLIENT_PASSWORD=other"}, "connect: WRONGPASS"},
		"no password":           {[]string{"CLIENT_USER="}, "check 1: NOAUTH"},
		"an unknown authority":  {[]string{"CLIENT_CA=" + p.store.CA}, "certificate signed by unknown authority"},
		"no certificate":        {[]string{"CLIENT_CERT="}, "connect: "},
		"a foreign certificate": {[]string{"CLIENT_CERT=" + cert, "CLIENT_KEY=" + key}, "connect: "},
		"no TLS":                {[]string{"CLIENT_CA="}, "connect: "},
	} {
		t.Run("a client with "+name, func(t *testing.T) {
			a := p.byPassword(bare)
			a.environment = append(a.environment, c.changes...)
			if out := drive(t, bare, "single", a); !strings.Contains(out.Steps["check"], c.want) {
				t.Errorf("%q, want %q", out.Steps, c.want)
			}
		})
	}
}
