package integration

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

const (
	// errorMost bounds the error output of a command about a faulty gate, in bytes.
	errorMost = 1 << 10
	// hopeless bounds the duration of such a command.
	hopeless = 20 * time.Second
)

// TestRolloutWithoutGate: if AppConfig does not reply, or replies wrongly, rollout prints
// an error, and writes nothing into the table. It prints the content of a gate as text.
func TestRolloutWithoutGate(t *testing.T) {
	t.Parallel()
	s, gate := newSite(t), newAppConfig(t)
	s.env = gate.environment()
	s.push(freeAt(t, "100/s"), "ann")
	for name, fault := range map[string]struct {
		befall func()
		says   string
	}{
		"an error":         {func() { gate.fail("", status(500, "InternalServerException", "{}")) }, "list deployments"},
		"no permission":    {func() { gate.fail("", status(403, "AccessDeniedException", `{"Message":"no"}`)) }, "AccessDeniedException"},
		"a captive portal": {func() { gate.fail("", status(200, "", html)) }, "list deployments"},
	} {
		fault.befall()
		for word, args := range map[string][]string{"status": {tableURL}, "start": {freeAt(t, "200/s"), tableURL}, "abort": {tableURL}} {
			began := time.Now()
			stdout, stderr, code := s.rollout(word, args...)
			if said := stdout + stderr; code != 1 || !strings.Contains(stderr, fault.says) || len(said) > errorMost || time.Since(began) > hopeless {
				t.Errorf("%s, %s: %d after %s\n%.2000s", name, word, code, time.Since(began), said)
			}
		}
		if _, ok, err := s.table.Get(t.Context(), tables.RevisionKey(1)); err != nil || ok {
			t.Errorf("%s: a revision was written: %v", name, err)
		}
	}
	gate.fail("", nil)
	gate.put("{\x1b[2J\n" + strings.Repeat("x", 100_000))
	if stdout, stderr, code := s.rollout("status", tableURL); strings.Contains(stdout, "\x1b") || len(stdout) > 2*errorMost || !strings.Contains(stdout, "deployment 1, complete: ") {
		t.Errorf("of another document: %d, %d bytes, %q%s", code, len(stdout), stdout[:min(len(stdout), 300)], stderr)
	}
}

// TestTrialOverCells: each cell enforces its part of a canary revision, and the others
// get the part of a drained cell. A revision that one cell takes back is taken back in
// all, although the control plane was killed meanwhile.
func TestTrialOverCells(t *testing.T) {
	t.Parallel()
	s, gate := tried(t)
	flags := []string{"--cells", "cells", "--rollout-gate", gateName}
	plane := s.controlPlane(flags...)
	var all []*proxy
	for _, id := range []string{"a", "b"} {
		all = append(all, s.serve(filepath.Join(t.TempDir(), "snapshot"), "--cells-id", id, "--cells-table", "cells", "--rollout-gate", gateName))
	}
	parts(t, "beta", all, 100, 100) // of 200
	_ = plane.stop(syscall.SIGKILL)
	plane = s.controlPlane(flags...)
	s.cells("drain", "--cells", "cells", "b")
	enforce(t, "beta", 200, all[0])
	for i, p := range all {
		if said := p.get("/readyz"); !strings.Contains(said, `"limits_trial":"revision 1, on 100 % of the tenants"`) {
			t.Errorf("proxy %d says %s", i, said)
		}
	}
	_ = plane.stop(syscall.SIGKILL)
	if err := all[1].client().Do(t.Context(), "RL.CONFIG", "ABORT").Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "b has written a veto", func() bool {
		stdout, _, _ := s.rollout("status", "--cells", "cells", tableURL)
		return strings.Contains(stdout, "revision 1 was taken back: aborted by RL.CONFIG ABORT")
	})
	_ = all[1].stop(syscall.SIGKILL)
	enforce(t, "beta", 200, all[0]) // there is no control plane
	if stdout, stderr, code := s.rollout("promote", "--cells", "cells", tableURL); code != 1 || !strings.Contains(stderr, "revision 1 is not promoted") {
		t.Errorf("a revision that a cell has taken back is promoted: %d\n%s%s", code, stdout, stderr)
	}
	s.controlPlane(flags...)
	enforce(t, "beta", 100, all[0])
	eventually(t, "the gate is closed", func() bool { return strings.Contains(gate.live(), `"revision":0`) })
}
