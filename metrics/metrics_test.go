package metrics_test

import (
	"maps"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/metrics"
)

// TestDecisions checks that there is one count for each decision under the limit that
// bound it, one for each shadow limit, and that counts continue when the limits are
// replaced.
func TestDecisions(t *testing.T) {
	r := prometheus.NewRegistry()
	m := metrics.NewDecisions(r)
	specs := []storetest.Spec{
		{ID: "real", By: []string{"tenant"}, Rate: "1/s"},
		{ID: "trial", By: []string{"tenant"}, Rate: "1/s", Mode: "shadow"},
	}
	for range 2 {
		set := storetest.Compile(t, specs...)
		enforced, trial := set.LimitByID("real"), set.LimitByID("trial")
		items := []limit.Item{
			{Limit: enforced, Source: limit.SourceStore},
			{Limit: trial, Source: limit.SourceStore},
		}
		m.Observe(set, nil, 0, &limit.Decision{Binding: enforced, Source: limit.SourceStore}, items)
		items[1].Allowed = true
		m.Observe(set, nil, 0, &limit.Decision{Allowed: true, Binding: enforced, Source: limit.SourceBackstop}, items)
		m.Observe(set, nil, 0, &limit.Decision{Allowed: true, Source: limit.SourcePolicy}, nil)
	}
	const want = `
# HELP limitgate_decisions_total Decisions by the limit that bound them (mode enforce), and what shadow limits would have decided (mode shadow).
# TYPE limitgate_decisions_total counter
limitgate_decisions_total{limit="",mode="enforce",source="policy",verdict="admit"} 2
limitgate_decisions_total{limit="real",mode="enforce",source="backstop",verdict="admit"} 2
limitgate_decisions_total{limit="real",mode="enforce",source="store",verdict="deny"} 2
limitgate_decisions_total{limit="trial",mode="shadow",source="store",verdict="admit"} 2
limitgate_decisions_total{limit="trial",mode="shadow",source="store",verdict="would_deny"} 2
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "limitgate_decisions_total"); err != nil {
		t.Error(err)
	}
}

// TestLabels checks the labels of decisions by limits of no set, that an id of two plans has a counter for each
// mode, and that a shadow limit that was not evaluated has none.
func TestLabels(t *testing.T) {
	r := prometheus.NewRegistry()
	m := metrics.NewDecisions(r)
	set := warning(t, "  free:\n    - {id: a, by: [tenant], rate: 10/s}\n  gold:\n    - {id: a, by: [tenant], rate: 10/s, mode: shadow}\n")
	inline, err := limit.NewInlineLimit(5, 1_000_000, 5)
	if err != nil {
		t.Fatal(err)
	}
	rule, err := limit.NewDescriptorLimit("domain.rule", 5, 1_000_000, limit.ModeEnforce)
	if err != nil {
		t.Fatal(err)
	}
	var plain, shadow *limit.Limit
	for _, l := range set.Limits {
		if l.Mode == limit.ModeShadow {
			shadow = l
		} else {
			plain = l
		}
	}
	for n, l := range []*limit.Limit{nil, inline, rule, plain} {
		for range n + 1 {
			m.Observe(set, nil, 0, &limit.Decision{Allowed: true, Binding: l, Source: limit.SourceStore}, []limit.Item{
				{Limit: shadow, Source: limit.SourceStore, Verdict: bucket.Verdict{Allowed: true}}, {Limit: shadow}, {Limit: plain, Source: limit.SourceStore},
			})
		}
	}
	const want = `
# HELP limitgate_decisions_total Decisions by the limit that bound them (mode enforce), and what shadow limits would have decided (mode shadow).
# TYPE limitgate_decisions_total counter
limitgate_decisions_total{limit="",mode="enforce",source="store",verdict="admit"} 1
limitgate_decisions_total{limit="a",mode="enforce",source="store",verdict="admit"} 4
limitgate_decisions_total{limit="a",mode="shadow",source="store",verdict="admit"} 10
limitgate_decisions_total{limit="descriptor",mode="enforce",source="store",verdict="admit"} 3
limitgate_decisions_total{limit="own",mode="enforce",source="store",verdict="admit"} 2
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(strings.ReplaceAll(want, `"own"`, strconv.Quote(limit.InlineID))), "limitgate_decisions_total"); err != nil {
		t.Error(err)
	}
}

// TestSettled checks that each change of a settlement has a counter for each outcome from the start, and that
// one settlement is counted in one of them.
func TestSettled(t *testing.T) {
	r := prometheus.NewRegistry()
	m := metrics.NewDecisions(r)
	count := func() map[string]float64 {
		counts := map[string]float64{}
		families, err := r.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range families {
			for _, c := range f.Metric {
				if f.GetName() == "limitgate_settlements_total" {
					counts[c.Label[0].GetValue()+" "+c.Label[1].GetValue()] = c.Counter.GetValue()
				}
			}
		}
		return counts
	}
	want := map[string]float64{}
	for _, change := range []string{"commit", "cancel", "release", "renew"} {
		for _, outcome := range []string{"unknown", "done", "already"} {
			want[change+" "+outcome] = 0
		}
	}
	if got := count(); !maps.Equal(got, want) {
		t.Errorf("at the start %v, want %v", got, want)
	}
	m.Settled(limit.ChangeRenew, limit.OutcomeAlready)
	want["renew already"] = 1
	if got := count(); !maps.Equal(got, want) {
		t.Errorf("after one %v, want %v", got, want)
	}
}

// TestLatencies checks that each source that a decision can have has a histogram, and that its decisions are
// counted there, and in the sum of all.
func TestLatencies(t *testing.T) {
	r := prometheus.NewRegistry()
	m := metrics.NewDecisions(r)
	m.Took(limit.SourceStore, time.Millisecond, 3)
	m.Took(limit.SourceCache, time.Second, 2)
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]uint64{}
	for _, f := range families {
		for _, h := range f.Metric {
			if f.GetName() == "limitgate_decision_seconds" {
				got[h.Label[0].GetValue()] = h.Histogram.GetSampleCount()
			}
		}
	}
	if want := map[string]uint64{"store": 3, "lease": 0, "cache": 2, "backstop": 0, "policy": 0}; !maps.Equal(got, want) {
		t.Errorf("observations %v, want %v", got, want)
	}
	total := int64(0)
	for _, n := range m.Latencies() {
		total += n
	}
	if total != 5 {
		t.Errorf("%d observations in all", total)
	}
}

// warning compiles limits of which some warn, beside a set that they may be tried on.
func warning(t *testing.T, text string, ids ...string) *limit.Set {
	t.Helper()
	set, _, err := config.ParseLimits("limits.yaml", []byte("version: 1\ndefault_plan: free\nplans:\n"+text), limit.CompileOptions{IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// nearLimits compares the counters of buckets that are nearly used up.
func nearLimits(t *testing.T, r *prometheus.Registry, step string, want ...string) {
	t.Helper()
	text := ""
	if len(want) > 0 {
		text = "# HELP limitgate_near_limit_total Admitted requests that left a bucket of a limit with warn nearly used up.\n# TYPE limitgate_near_limit_total counter\n"
	}
	for _, line := range want {
		text += "limitgate_near_limit_total" + line + "\n"
	}
	if err := testutil.GatherAndCompare(r, strings.NewReader(text), "limitgate_near_limit_total"); err != nil {
		t.Errorf("%s: %v", step, err)
	}
}

// TestNearLimit checks that the limits that warn have a counter from the start, those on trial too, that
// one id has one for each mode, and that counts continue when the limits are replaced, whichever set a
// request is of.
func TestNearLimit(t *testing.T) {
	r := prometheus.NewRegistry()
	m := metrics.NewDecisions(r)
	nearLimits(t, r, "no limits")
	first := warning(t, `  free:
    - {id: a, by: [tenant], rate: 10/s, warn: 80%}
    - {id: silent, by: [tenant], group: s, rate: 10/s}
    - {id: off, by: [tenant], group: o, rate: 10/s, warn: 80%, mode: off}
  gold:
    - {id: a, by: [tenant], rate: 10/s, warn: 80%, mode: shadow}
tenants: {acme: {plan: free, overrides: {silent: {rate: 5/s, warn: 50%}}}}
`)
	m.Use(first)
	nearLimits(t, r, "first", `{limit="a",mode="enforce"} 0`, `{limit="a",mode="shadow"} 0`)
	plain, shadow := first.Limits[0], first.Limits[0]
	for _, l := range first.Limits {
		if l.ID == "a" && l.Mode == limit.ModeShadow {
			shadow = l
		} else if l.ID == "a" {
			plain = l
		}
	}
	m.NearLimit(first, plain)
	m.NearLimit(first, plain)
	m.NearLimit(first, shadow)
	for _, l := range first.TenantLimits("acme") {
		if l.ID == "silent" {
			m.NearLimit(first, l)
		}
	}
	nearLimits(t, r, "counted", `{limit="a",mode="enforce"} 2`, `{limit="a",mode="shadow"} 1`, `{limit="silent",mode="enforce"} 1`)
	tried := warning(t, "  free:\n    - {id: b, by: [tenant], rate: 10/s, warn: 80%}\n", first.IDs...)
	second := first.Try(tried, 100)
	m.Use(second)
	nearLimits(t, r, "tried", `{limit="a",mode="enforce"} 2`, `{limit="a",mode="shadow"} 1`, `{limit="b",mode="enforce"} 0`, `{limit="silent",mode="enforce"} 1`)
	m.NearLimit(second, tried.LimitByID("b"))
	m.NearLimit(first, plain) // of a request that began before the change
	m.NearLimit(second, plain)
	nearLimits(t, r, "both", `{limit="a",mode="enforce"} 4`, `{limit="a",mode="shadow"} 1`, `{limit="b",mode="enforce"} 1`, `{limit="silent",mode="enforce"} 1`)
	l := first.Limits[0]
	if n := testing.AllocsPerRun(100, func() { m.NearLimit(second, l) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
