package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
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
