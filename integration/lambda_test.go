package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/admission"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
)

// TestLambdaTellsOfChanges: a function publishes pushed limits to a proxy. A change by
// hand delays no other change and is reverted, or becomes a dead letter. Repeated events
// change nothing. On a schedule the function publishes the digest of the whole table.
func TestLambdaTellsOfChanges(t *testing.T) {
	t.Parallel()
	s := newLambdaScene(t)
	s.start(lambdaRetries)
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"))
	s.push(tableLimits(t, "acme: {plan: free}, beta: {plan: gold}"), "ann")
	enforce(t, "acme", 100, p)
	enforce(t, "beta", 1000, p)
	keys := s.litter()
	const own = "acme: {plan: gold, overrides: {tenant: {rate: 700/s}}}, beta: {plan: gold}"
	s.push(tableLimits(t, own), "bob")
	enforce(t, "acme", 700, p)
	s.checkLetters(t, keys)

	for i := range 2 { // by hand: one is deleted, one is written
		key := []string{"TENANT#acme", "TENANT#beta"}[i]
		it, ok, err := s.table.Get(t.Context(), key)
		if err != nil || !ok {
			t.Fatalf("%s: %v", key, err)
		}
		s.changer.unsigned(it)
	}
	eventually(t, "both are put back", func() bool {
		acme, _, err := s.table.Get(t.Context(), "TENANT#acme")
		beta, _, other := s.table.Get(t.Context(), "TENANT#beta")
		return err == nil && other == nil && acme.Actor == "control-plane" && beta.Actor == "control-plane"
	})
	s.mapping.await(len(s.streamRecords()))
	s.checkPublished(t)
	enforce(t, "acme", 700, p)
	enforce(t, "beta", 1000, p)
	said, _, _ := strings.Cut(agree(t, "acme", p), " source:")

	before := s.digest(t)
	s.mapping.thrice(t)
	if after := s.digest(t); after != before {
		t.Errorf("repeated events changed %+v from %+v", after, before)
	}
	// Not just after a change.
	eventually(t, "digests are published", func() bool {
		s.relay.schedule(t)
		return len(s.digests()) >= 2
	})
	for _, d := range s.digests() {
		if d != before {
			t.Errorf("digest %+v of %+v", d, before)
		}
	}
	// A later change reaches the proxy after all of them.
	s.push(tableLimits(t, own+", last: {plan: gold}"), "bob")
	enforce(t, "last", 1000, p)
	if again, _, _ := strings.Cut(agree(t, "acme", p), " source:"); again != said {
		t.Errorf("repeated events changed %s to %s", said, again)
	}
	if n := metric(p.get("/metrics"), "limitgate_config_repairs_total"); n != 0 {
		t.Errorf("the proxy has read the table %d times, and missed nothing", n)
	}
	if letters := s.onward.read(); len(letters) > 0 {
		t.Errorf("given up: %v", letters)
	}
}

// TestLambdaGoesOn: changes that could not be published are retried from the first of
// them, and none is lost for any reply of the topic and for a kill of the function at any
// point. A change that is given up is reported, delays no other, and proxies find it by
// the digest of the table.
func TestLambdaGoesOn(t *testing.T) {
	t.Parallel()
	s := newLambdaScene(t)
	s.changes(40)
	s.censor.by(func(operation string, n int) ruling {
		if operation != "PublishBatch" {
			return letThrough
		}
		return []ruling{letThrough, refused, halved}[n%3]
	})
	s.start(lambdaRetries)
	s.mapping.await(s.records())
	if changes, all := s.checkPublished(t); all != changes {
		t.Errorf("%d changes were published %d times: processed records are repeated", changes, all)
	}
	if events, parts, errs := s.mapping.deliveredEvents(); parts < 3 || errs > 0 {
		t.Errorf("of %d events %d were done in part, and %d came to an error", len(events), parts, errs)
	}
	p := s.serve(filepath.Join(t.TempDir(), "snapshot"))

	s.censor.by(func(operation string, n int) ruling {
		switch {
		case operation != "PublishBatch":
		case n == 3: // of the second batch, or within it
			s.relay.kill()
			return refused
		case n == 5: // after publishing, and before the response
			s.relay.kill()
			return answerLost
		}
		return letThrough
	})
	s.changes(40)
	s.mapping.await(s.records())
	if changes, all := s.checkPublished(t); all <= changes {
		t.Errorf("%d changes were published %d times, although replies were lost", changes, all)
	}
	if n := s.relay.started(); n < 3 {
		t.Errorf("%d processes: not two have died", n)
	}
	s.enforced(t, p)
	s.givesUp(t, p)
}

// givesUp makes the topic refuse a change until it is given up.
func (s *lambdaScene) givesUp(t *testing.T, p *proxy) {
	t.Helper()
	s.censor.by(func(string, int) ruling { return refused })
	lost := s.changer.sign(tables.Item{Key: "TENANT#lost"})
	var letters []string
	eventually(t, "a change is given up", func() bool {
		letters = s.onward.read()
		return len(letters) > 0
	})
	s.censor.by(nil)
	var said struct {
		RequestContext struct {
			Condition              string
			ApproximateInvokeCount int
		}
		DDBStreamBatchInfo batchInfo
	}
	if err := json.Unmarshal([]byte(letters[0]), &said); err != nil {
		t.Fatalf("%s: %v", letters[0], err)
	}
	records := s.streamRecords()
	last := sequence(&records[len(records)-1])
	if info := said.DDBStreamBatchInfo; len(letters) != 1 || info.StartSequenceNumber != last || info.EndSequenceNumber != last || info.BatchSize != 1 || said.RequestContext.ApproximateInvokeCount != 1+lambdaRetries {
		t.Errorf("given up: %v, want one letter of %s", letters, last)
	}
	s.changer.sign(tables.Item{Key: "TENANT#found"})
	enforce(t, "found", int64(s.changer.made), p)
	enforce(t, "lost", 100, p) // as a tenant that is not listed
	if times, _ := s.publishedItems(); times["TENANT#lost 1"] != 0 {
		t.Error("a change that was given up was published")
	}
	for range 2 {
		s.relay.schedule(t)
	}
	enforce(t, "lost", rateOf(t, lost), p)
}

// rateOf returns the limit of a tenant that a changer has written.
func rateOf(t *testing.T, it tables.Item) (rate int64) {
	t.Helper()
	found := tenantRate.FindSubmatch(it.Body)
	if found == nil {
		t.Fatalf("%s has no rate: %s", it.Key, it.Body)
	}
	_, _ = fmt.Sscan(string(found[1]), &rate)
	return rate
}

// TestLambdaAudit: there is exactly one object of each change, although writes fail or
// seem to fail, the function is killed, and each event is delivered three more times.
func TestLambdaAudit(t *testing.T) {
	t.Parallel()
	s := newLambdaScene(t)
	bucket := s.archive()
	s.start(lambdaRetries)
	writes := startCensor(s.site)
	f := s.site.function("audit", append(writes.environment(), "LIMITGATE_AUDIT_BUCKET="+auditBucket)...)
	writes.by(func(_ string, n int) ruling {
		switch {
		case n == 15:
			f.kill()
			return refused
		case n%10 == 3:
			return refused
		case n%10 == 7:
			return answerLost
		}
		return letThrough
	})
	s.changes(30)
	m := s.mapStream(f, "limits", lambdaBatch, 20, s.onward.url)
	m.await(s.records())
	writes.by(nil)
	m.thrice(t)
	s.changer.check(t, readAudit(t, bucket))
	_, parts, errs := m.deliveredEvents()
	if n := f.started(); n != 2 || parts == 0 || errs == 0 {
		t.Errorf("%d processes, %d events done in part and %d errors: nothing went wrong", n, parts, errs)
	}
	if letters := s.onward.read(); len(letters) > 0 {
		t.Errorf("given up: %v", letters)
	}
}

// TestLambdaCells: a function publishes the cells that share the limits, measures their
// admissions, and ends the canary of a vetoed revision.
func TestLambdaCells(t *testing.T) {
	t.Parallel()
	gate := newAppConfig(t)
	s := newLambdaScene(t)
	s.env = gate.environment()
	s.start(lambdaRetries)
	f := s.site.function("cells", append(gate.environment(), "LIMITGATE_TABLE=limits", "LIMITGATE_CELLS_TABLE=cells", "LIMITGATE_ROLLOUT_GATE="+gateName)...)
	m := s.mapStream(f, "cells", lambdaBatch, lambdaRetries, s.onward.url)
	s.push(tableLimits(t, "acme: {plan: gold}"), "ann")
	all := []*proxy{s.serveCell("a"), s.serveCell("b")}
	parts(t, "acme", all, 500, 500)
	s.cells("weight", "--cells", "cells", "b", "300")
	parts(t, "acme", all, 250, 750)
	it, _, err := s.table.Get(t.Context(), tables.KeyCells)
	if err != nil {
		t.Fatal(err)
	}
	m.thrice(t)
	for range 3 {
		f.schedule(t)
	}
	if again, _, err := s.table.Get(t.Context(), tables.KeyCells); err != nil || !reflect.DeepEqual(again, it) {
		t.Errorf("%+v has become %+v: %v", it, again, err)
	}

	registry := dynamo.NewRegistry(s.Config, "cells")
	window := time.Now().UnixNano()/int64(admission.Window) - 1
	for cell, share := range map[string]float64{"a": 1, "b": 1.75} {
		if err := registry.Report(t.Context(), tables.Report{Cell: cell, Window: window, Shares: map[string]float64{"tenant:acme": share}}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the admissions of the cells are printed for CloudWatch", func() bool {
		return strings.Contains(strings.Join(f.printed(), ""), `"OverAdmissionMax":2.75`)
	})
	for _, line := range f.printed() {
		if !json.Valid([]byte(line)) || !strings.Contains(line, `"CloudWatchMetrics":[`) {
			t.Errorf("it prints %q", line)
		}
	}

	s.rollOut(0, "start", "--percent", "100", writeLimits(t, `
version: 1
default_plan: free
plans:
  free: [{id: tenant, by: [tenant], rate: 200/s}]
  gold: [{id: tenant, by: [tenant], rate: 1000/s}]
tenants: {acme: {plan: gold}}
`), tableURL)
	if err := registry.Veto(t.Context(), 1, "it denies too much"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the revision is ended, and the gate closed", func() bool {
		it, _, err := s.table.Get(t.Context(), tables.RevisionKey(1))
		return err == nil && it.Deleted && it.Actor == "control-plane" && strings.Contains(gate.live(), `"revision":0`)
	})
}
