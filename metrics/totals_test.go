package metrics_test

import (
	"cmp"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/metrics"
)

// TestTotals checks that totals are those of all limits, former ones too, and that reading them
// changes none.
func TestTotals(t *testing.T) {
	m := metrics.NewDecisions(prometheus.NewRegistry())
	for _, id := range []string{"first", "second"} {
		set := storetest.Compile(t, storetest.Spec{ID: id, By: []string{"tenant"}, Rate: "1/s"}, storetest.Spec{ID: "trial", By: []string{"tenant"}, Rate: "1/s", Mode: "shadow"})
		items := []limit.Item{{Limit: set.LimitByID("trial"), Source: limit.SourceStore}}
		m.Observe(set, nil, 0, &limit.Decision{Allowed: true, Binding: set.LimitByID(id), Source: limit.SourceLease}, items)
		m.Observe(set, nil, 0, &limit.Decision{Source: limit.SourcePolicy}, nil)
	}
	want := []metrics.Total{
		{Source: "policy", Denies: true, Count: 2},
		{Limit: "first", Source: "lease", Count: 1},
		{Limit: "second", Source: "lease", Count: 1},
		{Limit: "trial", Source: "store", Shadow: true, Denies: true, Count: 2},
	}
	for range 2 {
		got := m.Totals()
		slices.SortFunc(got, func(a, b metrics.Total) int { return cmp.Compare(a.Limit, b.Limit) })
		if !slices.Equal(got, want) {
			t.Errorf("the totals are %+v", got)
		}
	}
}
