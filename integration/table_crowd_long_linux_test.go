//go:build long

package integration

import (
	"os/exec"
	"strings"
	"testing"
	"time"
)

const (
	crowdTenants  = 10_000
	crowdSeconds  = 60             // a command takes some seconds on an idle machine
	crowdResident = 256 << 10      // KiB
	pipeEnds      = 128 + 13       // the exit code of a shell for SIGPIPE
	crowdStdout   = 4 * 1024 * 512 // bytes
)

// ran is the result of a command.
type ran struct {
	stdout, stderr string
	code           int
	took           time.Duration
}

// ran runs a command to its end, within bounds of time and memory.
func (s *site) ran(cmd *exec.Cmd, stdin string) (r ran) {
	s.tb.Helper()
	begun := time.Now()
	r.stdout, r.stderr, r.code = runCommand(s.tb, strings.NewReader(stdin), cmd)
	r.took = time.Since(begun)
	resident := maxResident(cmd)
	s.tb.Logf("%-25.25s exit %d after %s, %d MiB, prints %d lines", strings.Join(cmd.Args[1:], " "), r.code, ms(r.took), resident>>10, strings.Count(r.stdout, "\n"))
	if r.took > crowdSeconds*time.Second || resident > crowdResident || len(r.stdout) > crowdStdout {
		s.tb.Errorf("%.60s takes %s and %d KiB, and prints %d bytes", cmd.Args[1:], r.took, resident, len(r.stdout))
	}
	if strings.ContainsAny(r.stdout+r.stderr, "\r\x1b") {
		s.tb.Errorf("%.60s prints for a terminal", cmd.Args[1:])
	}
	return r
}

// TestLongTableCrowd: the command line with a table of 10,000 tenants. A closed pipe ends
// a command silently, and a push before it writes anything. A tenth of the tenants is not
// removed without --removes. The question summarizes many changes.
func TestLongTableCrowd(t *testing.T) {
	s := newAtomicSite(t)
	file, fewer := crowdOfTenants(t, crowdTenants, "free"), crowdOfTenants(t, crowdTenants-1000, "free")
	limits := func(stdin string, args ...string) ran {
		t.Helper()
		return s.ran(s.command(append([]string{"limits"}, args...)...), stdin)
	}
	if r := limits("", "lint", file); r.code != 0 {
		t.Errorf("lint: %d %s", r.code, r.stderr)
	}
	if r := limits("n\n", "push", "--actor", "ann", file, tableURL); r.code != 1 || !strings.HasSuffix(r.stdout, "\n10004 to add, 0 to change, 0 to delete; 0 limits are loosened, or may be: the first lines name them\nWrite these 10004 items? [y/N] ") {
		t.Errorf("the question: %d ...%s", r.code, r.stdout[max(0, len(r.stdout)-300):])
	}
	if r := limits("", "push", "--yes", "--actor", "ann", file, tableURL); r.code != 0 || r.stderr != "" {
		t.Fatalf("push: %d %s", r.code, r.stderr)
	}
	if r := limits("", "push", "--yes", "--actor", "ann", fewer, tableURL); r.code != 1 || !strings.Contains(r.stderr, "would remove 1000 of 10001 tenants; if that is meant, say --removes 1000") {
		t.Errorf("without a tenth: %d %s", r.code, r.stderr)
	}
	for _, args := range []string{"lint " + file, "pull " + tableURL, "diff " + fewer + " " + tableURL, "push --yes --removes 1000 --actor bob " + fewer + " " + tableURL} {
		shell := exec.Command("bash", "-c", binaries.release+" limits "+args+" | head -3; exit ${PIPESTATUS[0]}")
		shell.Env = s.command().Env
		if r := s.ran(shell, ""); r.code != pipeEnds || r.stderr != "" {
			t.Errorf("%.20s | head: %d %s", args, r.code, r.stderr)
		}
	}
	if r := limits("", "diff", file, tableURL); r.code != 0 || r.stdout != "no difference\n" {
		t.Errorf("a push whose output was closed has written: %d %.300s", r.code, r.stdout)
	}
}
