package proxy

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// gated returns limits of items in memory, with a gate whose state is body.
func gated(t *testing.T, body string, items ...table.Item) *tableSource {
	t.Helper()
	s, log := &config.Settings{Limits: "dynamodb://limits"}, slog.New(slog.DiscardHandler)
	src := &tableSource{name: s.Limits, log: log}
	src.rolloutGate = &rolloutGate{source: src, log: log}
	src.rolloutGate.apply([]byte(body))
	src.Catalog = catalog.New(catalog.Options{Name: s.Limits, Log: log, Compile: func(parts map[string]json.RawMessage, all bool) (*limit.Set, error) {
		return src.compile(s, parts, all)
	}})
	if err := src.Load(items); err != nil {
		t.Fatal(err)
	}
	src.changes = newChangeLog(s.Limits, src.Set(), log)
	return src
}

// gateItem is the first version of an item.
func gateItem(key, body string) table.Item {
	return table.Item{Key: key, Version: 1, Body: json.RawMessage(body), Actor: "ann", At: time.Now().UTC()}
}

// gateItems returns the items of a table whose first revision has a condition on one
// tenant.
func gateItems(more ...table.Item) []table.Item {
	const revision = `{"SHARED": {"version": 1, "default_plan": "free"}, "PLAN#free": [{"id": "tenant", "by": ["tenant"], "rate": "10/s"}],
		"PLAN#pro": [{"id": "tenant", "by": ["tenant"], "rate": "100/s"}, {"id": "big", "by": ["tenant"], "when": {"tenant": "acme"}, "rate": "50/s"}]}`
	return append([]table.Item{
		gateItem("SHARED", `{"version": 1, "default_plan": "free"}`), gateItem("PLAN#free", `[{"id": "tenant", "by": ["tenant"], "rate": "10/s"}]`),
		gateItem("PLAN#pro", `[{"id": "tenant", "by": ["tenant"], "rate": "100/s"}]`), gateItem("TENANT#acme", `{"plan": "pro"}`), gateItem("REVISION#1", revision),
	}, more...)
}

const gateOpen = `{"revision": 1, "percent": 100, "threshold": 5}`

func wantTrial(t *testing.T, src *tableSource, trial, failed string) {
	t.Helper()
	gotTrial, gotFailed := src.rolloutGate.describe(src.Set())
	if gotTrial != trial || !strings.Contains(gotFailed, failed) || failed == "" && gotFailed != "" {
		t.Errorf("on trial is %q, and wrong %q; want %q and %q", gotTrial, gotFailed, trial, failed)
	}
}

const onTrial = "revision 1, on 100 % of the tenants"

// TestRevisionBesideABadTenant: at start, an unusable tenant makes the others compile in
// parts; a revision that needs all of them is tried nevertheless.
func TestRevisionBesideABadTenant(t *testing.T) {
	src := gated(t, gateOpen, gateItems(gateItem("TENANT#lost", `{"plan": "none"}`))...)
	src.rolloutGate.retry()
	wantTrial(t, src, onTrial, "")
	before := src.Set()
	if src.rolloutGate.retry(); src.Set() != before {
		t.Error("it is compiled again for nothing")
	}
}

// TestTenantBeforeItsRevision: a tenant that changes just after the gate does not end the
// canary.
func TestTenantBeforeItsRevision(t *testing.T) {
	src := gated(t, `{"revision":0}`, gateItems()...)
	src.rolloutGate.mu.Lock()
	src.rolloutGate.gate = table.Gate{Revision: 1, Percent: 100}
	src.rolloutGate.mu.Unlock()
	src.Apply([]table.Item{gateItem("TENANT#beta", `{"plan": "free"}`)})
	if err := src.Recompile(); err != nil {
		t.Fatal(err)
	}
	wantTrial(t, src, onTrial, "")
}

// TestRevisionThatCannotBeTried: the status reports it, and the limits do not change
// until the gate changes.
func TestRevisionThatCannotBeTried(t *testing.T) {
	src := gated(t, gateOpen, gateItems(gateItem("TENANT#beta", `{"plan": "pro", "overrides": {"tenant": {"rate": "5/s"}}}`))...)
	wantTrial(t, src, onTrial, "")
	bad := gateItem("REVISION#2", `{"SHARED": {"version": 1}, "PLAN#free": []}`)
	src.Apply([]table.Item{bad})
	src.rolloutGate.apply([]byte(`{"revision": 2, "percent": 100}`))
	wantTrial(t, src, "", "try revision 2: ")
	src.rolloutGate.apply([]byte(gateOpen))
	wantTrial(t, src, onTrial, "")
}

// TestTakenBack: a vetoed revision is not tried again while the gate names it. A later
// revision with the same number is tried.
func TestTakenBack(t *testing.T) {
	src := gated(t, gateOpen, gateItems()...)
	if err := src.TakeBack("revision 9", "no"); err == nil {
		t.Error("another revision was taken back")
	}
	if err := src.TakeBack("revision 1", "it denies"); err != nil {
		t.Fatal(err)
	}
	wantTrial(t, src, "", "revision 1 was taken back: it denies")
	src.rolloutGate.apply([]byte(`{"revision": 1, "percent": 50}`))
	wantTrial(t, src, "", "revision 1 was taken back: it denies")
	src.rolloutGate.apply([]byte(`{"revision":0}`))
	wantTrial(t, src, "", "")
	src.rolloutGate.apply([]byte(gateOpen)) // the registry has no veto yet
	wantTrial(t, src, "", "")
	src.rolloutGate.apply([]byte(`{"revision":0}`))
	src.rolloutGate.unsent = veto{} // the registry has the veto
	src.rolloutGate.apply([]byte(gateOpen))
	wantTrial(t, src, onTrial, "")
}

// TestTakenBackMeanwhile: a revision is taken back even while other items that arrived
// with it are being compiled.
func TestTakenBackMeanwhile(t *testing.T) {
	src := gated(t, gateOpen, gateItems()[:4]...)
	var taken error
	src.OnChange(func(set *limit.Set) {
		if trial, _ := set.Trial(); trial != nil && taken == nil {
			if now, _ := src.Set().Trial(); now == nil {
				taken = errors.New("what decides is not what Set returns")
			}
		}
	})
	src.Apply([]table.Item{gateItems()[4], gateItem("TENANT#lost", `{"plan": "none"}`)})
	if src.rolloutGate.retry(); taken != nil {
		t.Error(taken)
	}
	wantTrial(t, src, onTrial, "")
}
