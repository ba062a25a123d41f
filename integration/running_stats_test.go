package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestStats: stats prints what a proxy decides, by TLS and for a user who may read the limits of all
// tenants, until it is interrupted.
func TestStats(t *testing.T) {
	folder := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	watcher, service := strings.Repeat("w", 32), strings.Repeat("s", 32)
	users := write("users.acl", "user watcher on "+userRule(watcher)+" ~* +@read\nuser service on "+userRule(service)+" ~acme +@check\n")
	a := redistest.NewAuthority(t)
	p := certify(t, a, "", "--users", users)
	flags := func(user, password string) []string {
		return []string{"stats", "--addr", p.addr, "--tls", "--tls-ca", a.CA, "--user", user, "--password-file", write(user, password), "--every", "20ms"}
	}
	if _, errs, code := run(t, nil, flags("service", service)...); code != 1 || !strings.Contains(errs, "+@read ~*") {
		t.Errorf("a user of one tenant: exit %d, %s", code, errs)
	}
	if _, errs, code := run(t, nil, "stats", "--addr", redistest.Start(t).Addr); code != 1 || !strings.Contains(errs, "is no limitgate") {
		t.Errorf("of a Redis: exit %d, %s", code, errs)
	}
	if _, errs, code := run(t, nil, "stats", "--every", "0"); code != 64 || !strings.Contains(errs, "--every is 0s: want 10ms") {
		t.Errorf("without a time: exit %d, %s", code, errs)
	}
	cmd := exec.CommandContext(t.Context(), binaries.release, append(flags("watcher", watcher), "--json")...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	checks := p.client(t, a, nil, nil)
	lines, began, seen := bufio.NewScanner(out), time.Now(), false
	for !seen && lines.Scan() && time.Since(began) < time.Minute {
		if err := checks.Do(t.Context(), "AUTH", "service", service).Err(); err != nil {
			t.Fatal(err)
		}
		if err := checks.Do(t.Context(), "RL.CHECK", "acme", "-", "-").Err(); err != nil {
			t.Fatal(err)
		}
		var line struct {
			Clients   int      `json:"clients"`
			Decisions float64  `json:"decisions_per_second"`
			P99       *float64 `json:"p99_ms"`
			Limits    string   `json:"limits_version"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%v of %s", err, lines.Text())
		}
		seen = line.Decisions > 0 && line.P99 != nil && *line.P99 > 0 && line.Clients == 2 && len(line.Limits) == 12
	}
	if !seen {
		t.Error("no line has the decisions")
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for lines.Scan() { // so that it can write what it has begun
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("interrupted: %v", err)
	}
}
