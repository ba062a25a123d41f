package integration

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

// tried returns a site with limits of 100/s, with 200/s as the canary revision 1.
func tried(t *testing.T) (*site, *appConfig) {
	t.Helper()
	s, gate := newSite(t), newAppConfig(t)
	s.env = gate.environment()
	s.push(freeAt(t, "100/s"), "ann")
	s.rollOut(0, "start", "--percent", "100", freeAt(t, "200/s"), tableURL)
	return s, gate
}

// item reads an item that must exist.
func (s *site) item(key string) tables.Item {
	s.tb.Helper()
	it, ok, err := s.table.Get(s.tb.Context(), key)
	if err != nil || !ok {
		s.tb.Fatalf("%s: %v", key, err)
	}
	return it
}

// asks starts a subcommand of rollout and returns when it asks for confirmation.
func (s *site) asks(t *testing.T, word string, args ...string) *pusher {
	t.Helper()
	return s.asked(t, "ann", append([]string{"rollout", word, "--actor", "ann", "--gate", gateName}, args...)...)
}

// TestRolloutRaces: if two people start or end a canary at the same time, one succeeds,
// and the other one writes nothing.
func TestRolloutRaces(t *testing.T) {
	t.Parallel()
	s, gate := tried(t)
	promotes := s.asks(t, "promote", "--cells", "cells", tableURL)
	s.rollOut(0, "abort", tableURL)
	if stdout, stderr, code := promotes.yes(t); code != 1 || !strings.Contains(stderr, "REVISION#1 is version 2 now, by ann") || !strings.Contains(stderr, "nothing is written") {
		t.Errorf("a revision that was aborted meanwhile is promoted: %d\n%s%s", code, stdout, stderr)
	}
	if stdout, _, code := s.limits("diff", freeAt(t, "100/s"), tableURL); code != 0 {
		t.Errorf("the table has changed: %s", stdout)
	}

	starts := s.asks(t, "start", "--percent", "7", freeAt(t, "300/s"), tableURL)
	s.rollOut(0, "start", "--percent", "9", freeAt(t, "400/s"), tableURL)
	if stdout, stderr, code := starts.yes(t); code != 1 || !strings.Contains(stderr, "REVISION#2 is version 1 now, by ann") {
		t.Errorf("two are started: %d\n%s%s", code, stdout, stderr)
	}
	if it := s.item(tables.RevisionKey(2)); !strings.Contains(string(it.Body), "400/s") || !strings.Contains(gate.live(), `"percent":9`) {
		t.Errorf("the revision is %s, and the gate says %s", it.Body, gate.live())
	}

	promotes = s.asks(t, "promote", "--cells", "cells", tableURL)
	if err := dynamo.NewRegistry(s.Config, "cells").Veto(t.Context(), 2, "it denies too much"); err != nil {
		t.Fatal(err)
	}
	if stdout, stderr, code := promotes.yes(t); code != 1 || !strings.Contains(stderr, "it was taken back: it denies too much") {
		t.Errorf("a revision that was vetoed meanwhile is promoted: %d\n%s%s", code, stdout, stderr)
	}
}

// TestPromoteWhatWasTried: a promote does not undo limits that were pushed since the
// revision was written, and does not mix with limits that are pushed during it.
func TestPromoteWhatWasTried(t *testing.T) {
	t.Parallel()
	s, _ := tried(t)
	promotes := s.asks(t, "promote", "--cells", "cells", tableURL)
	gold := strings.Replace(readText(t, freeAt(t, "100/s")), "1000/s", "2000/s", 1)
	s.push(writeLimits(t, gold), "bob")
	if stdout, stderr, code := promotes.yes(t); code != 1 || !strings.Contains(stderr, "PLAN#gold is version 2 now, by bob") {
		t.Errorf("a plan that was changed meanwhile is promoted with it: %d\n%s%s", code, stdout, stderr)
	}
	if rate := string(s.item("PLAN#free").Body); !strings.Contains(rate, "100/s") {
		t.Errorf("the plan is %s", rate)
	}
	more := strings.Replace(gold, "plans:", "plans:\n  a: [{id: tenant, by: [tenant], rate: 1/s}]\n  b: [{id: tenant, by: [tenant], rate: 1/s}]\n  c: [{id: tenant, by: [tenant], rate: 1/s}]", 1)
	s.push(writeLimits(t, more), "bob")
	if stdout, stderr, code := s.rollout("promote", "--cells", "cells", tableURL); code != 1 || !strings.Contains(stderr, "say --removes 3") {
		t.Errorf("three plans of another person are deleted: %d\n%s%s", code, stdout, stderr)
	}
	s.rollOut(0, "promote", "--removes", "3", "--cells", "cells", tableURL)
}

const vetoed = "it denies too much"

// veto writes a veto of a revision, and waits until a control plane has ended its canary.
func (s *site) veto(t *testing.T, revision int64) {
	t.Helper()
	if err := dynamo.NewRegistry(s.Config, "cells").Veto(t.Context(), revision, vetoed); err != nil {
		t.Fatal(err)
	}
	eventually(t, "its trial is ended", func() bool { return s.item(tables.RevisionKey(revision)).Deleted })
}

// closeTries bounds how often a control plane tries to close a gate in closeWatch: each
// attempt leaves a version of the configuration behind.
const (
	closeWatch = 10 * time.Second
	closeTries = 3
)

// TestGateThatCannotBeClosed: a control plane without permission to deploy retries at
// growing intervals, and closes the gate when it has permission.
func TestGateThatCannotBeClosed(t *testing.T) {
	t.Parallel()
	s, gate := tried(t)
	gate.denies(vetoed)
	plane := s.controlPlane("--cells", "cells", "--rollout-gate", gateName)
	s.veto(t, 1)
	pause(closeWatch)
	if n := gate.count("POST hostedconfigurationversions"); n == 0 || n > closeTries {
		t.Errorf("in %s it has made %d versions of the gate", closeWatch, n)
	}
	if n := strings.Count(plane.output(), "level=ERROR"); n > closeTries+2 {
		t.Errorf("it has logged %d errors:\n%s", n, plane.output())
	}
	gate.denies("")
	eventually(t, "the gate is closed", func() bool { return strings.Contains(gate.live(), `"revision":0`) })
	if n := gate.count("POST deployments"); n != 1 {
		t.Errorf("%d deployments: %s", n, plane.output())
	}
}

// TestGateOfAnotherRevision: a control plane that could not close the gate of a revision does not
// close that of the next one.
func TestGateOfAnotherRevision(t *testing.T) {
	t.Parallel()
	s, gate := tried(t)
	gate.denies(vetoed)
	s.controlPlane("--cells", "cells", "--rollout-gate", gateName)
	s.veto(t, 1)
	eventually(t, "it tries to close the gate", func() bool { return gate.count("POST deployments") > 0 })
	s.rollOut(0, "start", "--percent", "50", freeAt(t, "300/s"), tableURL)
	gate.denies("")
	for end := time.Now().Add(closeWatch); time.Now().Before(end); pause(100 * time.Millisecond) {
		if said := gate.live(); !strings.Contains(said, `"revision":2,`) {
			t.Fatalf("the gate of revision 2 says %s", said)
		}
	}
}

// TestVetoWithoutRegistry: a proxy that cannot write its veto of a revision logs that, a
// bounded number of times.
func TestVetoWithoutRegistry(t *testing.T) {
	t.Parallel()
	s, _ := tried(t)
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"), "--cells-table", "nowhere", "--rollout-gate", gateName)
	enforce(t, "beta", 200, p)
	if err := p.client().Do(t.Context(), "RL.CONFIG", "ABORT").Err(); err != nil {
		t.Fatal(err)
	}
	enforce(t, "beta", 100, p)
	pause(closeWatch)
	if n := strings.Count(p.output(), "failed to write the veto"); n == 0 || n > closeTries+1 {
		t.Errorf("in %s it has logged that %d times", closeWatch, n)
	}
	if said := p.get("/readyz"); !strings.Contains(said, "revision 1 was taken back: aborted by RL.CONFIG ABORT") {
		t.Errorf("/readyz says %s", said)
	}
}

// TestTenantAgainstATrial: a tenant that does not compile with a revision ends its
// canary, and proxies report it, until the tenant is gone and RL.CONFIG RELOAD
// makes them read the table again. Then all proxies have the canary, those that have just
// started and those that were running.
func TestTenantAgainstATrial(t *testing.T) {
	t.Parallel()
	s, gate := newSite(t), newAppConfig(t)
	s.env = gate.environment()
	s.push(freeAt(t, "100/s"), "ann")
	s.rollOut(0, "start", "--percent", "100", writeLimits(t, strings.Replace(readText(t, freeAt(t, "100/s")), "{id: tenant", "{id: another", 1)), tableURL)
	plane := s.controlPlane()
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"), "--cells-table", "cells", "--rollout-gate", gateName)
	trial := func(p *proxy) bool { return strings.Contains(p.get("/readyz"), `"limits_trial":"revision 1`) }
	eventually(t, "it is tried", func() bool { return trial(p) })
	against := strings.Replace(readText(t, freeAt(t, "100/s")), "{acme: ", "{odd: {plan: free, overrides: {tenant: {rate: 5/s}}}, acme: ", 1)
	s.push(writeLimits(t, against), "bob")
	enforce(t, "odd", 5, p)
	eventually(t, "it reports why it has no canary", func() bool {
		said := p.get("/readyz")
		return !trial(p) && strings.Contains(said, "try revision 1") && strings.Contains(said, "odd")
	})
	s.push(freeAt(t, "100/s"), "bob")
	enforce(t, "odd", 100, p)
	started := s.serve(filepath.Join(t.TempDir(), "snapshot"), "--cells-table", "cells", "--rollout-gate", gateName)
	eventually(t, "a new proxy tries it", func() bool { return trial(started) })
	if err := p.client().Do(context.Background(), "RL.CONFIG", "RELOAD").Err(); err != nil {
		t.Fatal(err)
	}
	if said := p.get("/readyz"); !trial(p) || strings.Contains(said, "limits_error") {
		t.Errorf("the running proxy reports %s\n%s\n%s", said, p.output(), plane.output())
	}
}
