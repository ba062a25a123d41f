package integration

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/controlplane/dynamo"
)

// rollout runs a subcommand of rollout and returns its output.
func (s *site) rollout(word string, args ...string) (stdout, stderr string, code int) {
	s.tb.Helper()
	if word != "status" {
		args = append([]string{"--yes", "--actor", "ann"}, args...)
	}
	return runCommand(s.tb, nil, s.command(append([]string{"rollout", word, "--gate", gateName}, args...)...))
}

// rollOut runs a subcommand of rollout and requires an exit code.
func (s *site) rollOut(want int, word string, args ...string) (stdout string) {
	s.tb.Helper()
	stdout, stderr, code := s.rollout(word, args...)
	if code != want {
		s.tb.Fatalf("rollout %s %v: %d, not %d\n%s%s", word, args, code, want, stdout, stderr)
	}
	return stdout
}

// freeAt returns the limits of tableLimits with acme on the plan gold, and free at a
// rate.
func freeAt(tb testing.TB, rate string) string {
	tb.Helper()
	return writeLimits(tb, `
version: 1
default_plan: free
plans:
  free: [{id: tenant, by: [tenant], rate: `+rate+`}]
  gold: [{id: tenant, by: [tenant], rate: 1000/s}]
tenants: {acme: {plan: gold}}
`)
}

// readText reads a file.
func readText(tb testing.TB, path string) string {
	tb.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// TestRollout: all proxies try a revision of the plans on a stable part of the tenants. A
// promoted one applies to all tenants. One that denies more of the same requests is taken
// back everywhere, although only one proxy has noticed it.
func TestRollout(t *testing.T) {
	t.Parallel()
	s, gate := newSite(t), newAppConfig(t)
	s.env = gate.environment()
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	plane := s.controlPlane("--cells", "cells", "--rollout-gate", gateName)
	var all []*proxy
	for range 2 {
		all = append(all, s.serve(filepath.Join(t.TempDir(), "snapshot"), "--cells-table", "cells", "--rollout-gate", gateName))
	}
	in, out := cohorts(5000)
	rate := func(rate string) string { return freeAt(t, rate) }
	enforce(t, in, 100, all...)

	if said := s.rollOut(0, "start", "--percent", "50", rate("200/s"), tableURL); !strings.Contains(said, "change PLAN#free, version 1 by ann") {
		t.Errorf("start does not say what it changes: %s", said)
	}
	enforce(t, in, 200, all...)
	enforce(t, out, 100, all...)
	if said := s.rollOut(2, "status", tableURL); !strings.Contains(said, `"revision":1,"percent":50`) || !strings.Contains(said, "revision 1, by ann") {
		t.Errorf("status says %s", said)
	}
	s.rollOut(0, "start", "--percent", "100", rate("200/s"), tableURL) // the same rate again
	enforce(t, out, 200, all...)
	if stdout, stderr, code := s.rollout("start", rate("300/s"), tableURL); code != 1 || !strings.Contains(stderr, "REVISION#1 is there: promote or abort it first") {
		t.Errorf("another one is started beside it: %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := s.rollout("promote", tableURL); code != 64 || !strings.Contains(stderr, "--cells is needed") {
		t.Errorf("promoted without a look at vetoes: %d %s", code, stderr)
	}
	s.rollOut(0, "promote", "--cells", "cells", tableURL)
	enforce(t, out, 200, all...)
	eventually(t, "the trial is over", func() bool {
		return !strings.Contains(asText(all[0].client().Do(context.Background(), "RL.CONFIG", "VERSION").Val()), "revision 1")
	})
	if stdout, stderr, code := s.limits("diff", rate("200/s"), tableURL); code != 0 {
		t.Errorf("the promoted limits are not in the table: %d\n%s%s", code, stdout, stderr)
	}

	s.rollOut(0, "start", "--percent", "50", rate("10/m"), tableURL)
	enforce(t, in, 10, all...)
	ask(t, all[0].client(), in, 300)
	enforce(t, in, 200, all...)
	eventually(t, "the gate is closed", func() bool { return strings.Contains(gate.live(), `"revision":0`) })
	if said := s.rollOut(0, "status", "--cells", "cells", tableURL); !strings.Contains(said, "revision 2 was taken back: of ") || !strings.Contains(said, "no revision is there") {
		t.Errorf("status says %s", said)
	}
	if !strings.Contains(plane.output(), "ended vetoed revision") {
		t.Errorf("the control plane does not log it:\n%s", plane.output())
	}

	s.rollOut(0, "start", "--percent", "50", rate("400/s"), tableURL)
	enforce(t, in, 400, all...)
	gate.run() // a deployment in progress blocks others
	s.rollOut(0, "abort", tableURL)
	if n := gate.stops(); n != 1 {
		t.Errorf("%d deployments were stopped", n)
	}
	enforce(t, in, 200, all...)
	if _, stderr, code := s.rollout("promote", tableURL); code != 1 || !strings.Contains(stderr, "no revision is there") {
		t.Errorf("an aborted revision is promoted: %d %s", code, stderr)
	}
}

// TestPromoteAfterAVeto: a revision that a proxy has vetoed is not promoted without
// --despite-veto, even while no control plane runs to end its canary.
func TestPromoteAfterAVeto(t *testing.T) {
	t.Parallel()
	s, gate := newSite(t), newAppConfig(t)
	s.env = gate.environment()
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	content, err := os.ReadFile(tableLimits(t, "acme: {plan: gold}"))
	if err != nil {
		t.Fatal(err)
	}
	strict := strings.Replace(string(content), "100/s", "1/s", 1)
	s.rollOut(0, "start", writeLimits(t, strict), tableURL)
	if err := dynamo.NewRegistry(s.Config, "cells").Veto(t.Context(), 1, "of acme 97 % are denied"); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := s.rollout("promote", "--cells", "cells", tableURL); code != 1 || !strings.Contains(stderr, "revision 1 is not promoted: it was taken back: of acme 97 % are denied") {
		t.Errorf("in spite of a veto: %d\n%s%s", code, stdout, stderr)
	}
	if stdout, _, code := s.limits("diff", tableLimits(t, "acme: {plan: gold}"), tableURL); code != 0 {
		t.Errorf("the table has changed: %s", stdout)
	}
	s.rollOut(0, "promote", "--cells", "cells", "--despite-veto", tableURL)
	if stdout, _, code := s.limits("diff", writeLimits(t, strict), tableURL); code != 0 {
		t.Errorf("it is not promoted: %s", stdout)
	}
}
