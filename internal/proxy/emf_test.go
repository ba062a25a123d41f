package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/emf"
	"github.com/limitgate/limitgate/internal/emf/emftest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/metrics"
)

// emfVersions are versions of limits. The first two have limits that the others have not, also of the
// same ids with other modes.
var emfVersions = []string{
	`{id: a, by: [tenant], rate: 10/s}, {id: b, by: [tenant], when: {op: "GET /*"}, rate: 20/s, mode: shadow, group: b}`,
	`{id: a, by: [tenant], rate: 30/s, mode: shadow}, {id: c, by: [tenant], when: {op: "PUT /x"}, rate: 40/s, group: c}`,
	`{id: d, by: [tenant], rate: 50/s}`,
}

// emfSet compiles limits of two plans, of which one has the given limits, beside a set with other ids.
func emfSet(t *testing.T, limits string, ids ...string) *limit.Set {
	t.Helper()
	set, _, err := config.ParseLimits("limits.yaml", fmt.Appendf(nil, `version: 1
default_plan: free
plans:
  free: [%s]
  paid: [{id: a, by: [tenant], rate: 1000/s}]
tenants: {acme-corp: {plan: paid, overrides: {a: {rate: 7777/s}}}}
shared: [{id: ip, by: [ip], rate: 60/s, on_error: open}]
`, limits), limit.CompileOptions{IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestEMFSums checks that the sums of all lines are the counters, after random decisions between which
// the limits change, and that there is at most one line a limit and second.
func TestEMFSums(t *testing.T) {
	var sets []*limit.Set
	for _, v := range emfVersions {
		sets = append(sets, emfSet(t, v))
	}
	rapid.Check(t, func(rt *rapid.T) {
		registry := prometheus.NewRegistry()
		decisions := metrics.NewDecisions(registry)
		limits := &emfLimits{}
		var out syncbuffer.Buffer
		var mu sync.Mutex // guards set, and orders decisions and snapshots
		set := sets[0]
		seconds := 0
		synctest.Test(t, func(*testing.T) {
			w := emf.New(emf.Options{Service: "s", Sink: emf.NewStream(&out), Log: slog.New(slog.DiscardHandler), Snapshot: func() emf.Snapshot {
				mu.Lock()
				defer mu.Unlock()
				s := countDecisions(decisions.Totals())
				limits.use(set)
				limits.describe(s.Limits)
				return s
			}})
			end := runUntil(w.Run)
			for range rapid.IntRange(0, 30).Draw(rt, "steps") {
				mu.Lock()
				switch rapid.IntRange(0, 2).Draw(rt, "step") {
				case 0:
					set = rapid.SampledFrom(sets).Draw(rt, "set")
				default:
					decideRandomly(rt, decisions, set)
				}
				mu.Unlock()
				wait := time.Duration(rapid.IntRange(0, 1500).Draw(rt, "wait")) * time.Millisecond
				time.Sleep(wait)
			}
			begin := time.UnixMilli(946684800000) // at which the time of a test starts
			seconds = int(time.Since(begin)/time.Second) + 1
			end()
		})
		compareSums(rt, emftest.CheckAll(t, out.String()), registry, seconds)
	})
}

// decideRandomly counts a decision by limits of a set.
func decideRandomly(rt *rapid.T, decisions *metrics.Decisions, set *limit.Set) {
	sources := []limit.Source{limit.SourceStore, limit.SourceLease, limit.SourceCache, limit.SourceBackstop, limit.SourcePolicy}
	d := limit.Decision{Allowed: rapid.Bool().Draw(rt, "allowed"), Source: rapid.SampledFrom(sources).Draw(rt, "source")}
	all := set.TenantLimits(rapid.SampledFrom([]string{"acme-corp", "other"}).Draw(rt, "tenant"))
	var items []limit.Item
	for _, l := range all {
		it := limit.Item{Limit: l, Source: rapid.SampledFrom(sources).Draw(rt, "item source")}
		it.Allowed = rapid.Bool().Draw(rt, "item allowed")
		items = append(items, it)
		if l.Mode == limit.ModeEnforce && rapid.Bool().Draw(rt, "binds") {
			d.Binding = l
		}
	}
	if rapid.IntRange(0, 9).Draw(rt, "inline") == 0 {
		d.Binding, _ = limit.NewInlineLimit(1, 1, 1)
	}
	for range rapid.IntRange(1, 5).Draw(rt, "times") {
		decisions.Observe(set, nil, 0, &d, items)
	}
}

// compareSums compares the sums of lines with the counters of a registry.
func compareSums(rt *rapid.T, lines []emftest.Line, registry *prometheus.Registry, seconds int) {
	sums, want := map[string]float64{}, map[string]float64{}
	perSecond := map[string]int{}
	for _, l := range lines {
		id := l.Dimensions["Limit"]
		if perSecond[fmt.Sprint(l.Time, id)]++; perSecond[fmt.Sprint(l.Time, id)] > 1 {
			rt.Errorf("two lines of %q at %s", id, l.Time)
		}
		for name, values := range l.Metrics {
			if name != "OpenBreakers" && name != "ConfigStale" {
				sums[id+" "+name] += values[0]
			}
		}
		sources, _ := l.Properties["sources"].(map[string]any)
		for source, n := range sources {
			sums[id+" "+source] += n.(float64)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		rt.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			if f.GetName() == "limitgate_decisions_total" {
				addWanted(want, labels, m.GetCounter().GetValue())
			}
		}
	}
	maps.DeleteFunc(sums, func(_ string, n float64) bool { return n == 0 })
	if !maps.Equal(sums, want) {
		rt.Errorf("the sums are\n%v, want\n%v", sums, want)
	}
	if ids := 6; len(lines) > seconds*(1+ids) {
		rt.Errorf("%d lines in %d seconds", len(lines), seconds)
	}
}

// addWanted adds a counter to the sums that lines must have.
func addWanted(want map[string]float64, labels map[string]string, n float64) {
	if id := labels["limit"]; id != "" {
		name := map[string]string{"admit": "Allowed", "deny": "Denied", "would_deny": "WouldDeny"}[labels["verdict"]]
		want[id+" "+name] += n
		want[id+" "+labels["source"]] += n
	}
	if labels["mode"] != "enforce" {
		return
	}
	want[" Decisions"] += n
	if labels["verdict"] == "deny" {
		want[" Denied"] += n
	}
	if name := map[string]string{"backstop": "Backstop", "lease": "LeaseDecisions"}[labels["source"]]; name != "" {
		want[" "+name] += n
	}
}

// TestEMFLimits checks the descriptions of limits, those on trial and of several plans too, and that
// none is about a tenant.
func TestEMFLimits(t *testing.T) {
	limits := &emfLimits{inCell: true}
	set := emfSet(t, emfVersions[0])
	limits.use(set.Try(emfSet(t, emfVersions[1], set.IDs...), 1))
	all := []emf.Limit{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "ip"}, {ID: "gone"}}
	limits.describe(all)
	for i, want := range []emf.Limit{
		{ID: "a", Plan: "free,paid", PerCell: []float64{10, 1000, 30}},
		{ID: "b", Plan: "free", Op: "GET /*", PerCell: []float64{20}},
		{ID: "c", Plan: "free", Op: "PUT /x", PerCell: []float64{40}},
		{ID: "ip", PerCell: []float64{60}},
		{ID: "gone"},
	} {
		if got := all[i]; got.Plan != want.Plan || got.Op != want.Op || !slices.Equal(got.PerCell, want.PerCell) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
}

// runUntil runs a part, and returns a function that ends it.
func runUntil(part func(context.Context) error) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = part(ctx)
	}()
	return func() {
		cancel()
		<-done
	}
}
