package metrics_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/metrics"
)

// values returns the samples of a registry, one a line: of histograms the sum and the number of observations.
func values(t *testing.T, r prometheus.Gatherer) string {
	t.Helper()
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			fmt.Fprintf(&text, "%s{%s} %v", f.GetName(), strings.Join(labels, ","), m.GetGauge().GetValue()+m.GetCounter().GetValue())
			if h := m.Histogram; h != nil {
				fmt.Fprintf(&text, " %v in %d", h.GetSampleSum(), h.GetSampleCount())
			}
			text.WriteString("\n")
		}
	}
	return text.String()
}

// TestStore checks that each value of a store has its own metric, and its master and kind as labels.
func TestStore(t *testing.T) {
	var trips latency.Histogram
	trips.Observe(2*time.Second, 3)
	r := prometheus.NewRegistry()
	metrics.RegisterStore(r, func() metrics.Store {
		return metrics.Store{
			Shards: []metrics.Shard{
				{
					Addr: "a:1", State: 2, Transitions: map[string]int64{"open": 11, "closed": 12}, Errors: map[string]int64{"timeout": 13},
					Batches: 14, Calls: 15, Checks: 16, Queued: 17, RoundTrip: &trips,
				},
				{Addr: "b:2", State: 1},
			},
			Errors: map[string]int64{"no_node": 21}, Redirects: map[string]int64{"moved": 22},
			Shed: 31, ScriptLoads: 32, RefundsLost: 33, Reloads: 34, Resets: 35, RoleErrors: 36,
		}
	})
	const want = `limitgate_breaker_state{shard="a:1"} 2
limitgate_breaker_state{shard="b:2"} 1
limitgate_breaker_transitions_total{shard="a:1",state="closed"} 12
limitgate_breaker_transitions_total{shard="a:1",state="open"} 11
limitgate_refunds_lost_total{} 33
limitgate_role_mismatch_total{} 36
limitgate_script_loads_total{} 32
limitgate_shed_decisions_total{} 31
limitgate_store_batch_seconds{shard="a:1"} 0 6 in 3
limitgate_store_batches_total{shard="a:1"} 14
limitgate_store_batches_total{shard="b:2"} 0
limitgate_store_calls_total{shard="a:1"} 15
limitgate_store_calls_total{shard="b:2"} 0
limitgate_store_checks_total{shard="a:1"} 16
limitgate_store_checks_total{shard="b:2"} 0
limitgate_store_errors_total{kind="no_node",shard=""} 21
limitgate_store_errors_total{kind="timeout",shard="a:1"} 13
limitgate_store_queued_checks{shard="a:1"} 17
limitgate_store_queued_checks{shard="b:2"} 0
limitgate_store_redirects_total{kind="moved"} 22
limitgate_store_reset_total{} 35
limitgate_topology_reloads_total{} 34
`
	if got := values(t, r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestCells checks the values of a cell: of limits that count alone.
func TestCells(t *testing.T) {
	r := prometheus.NewRegistry()
	metrics.RegisterCells(r, func() metrics.Cells {
		return metrics.Cells{Version: 7, Active: 3, Share: 0.25, Missed: 4, Raised: 5, Limits: []*limit.Limit{
			{ID: "a", Plan: "p", Rate: bucket.Rate{Count: 9}}, {ID: "ban", Action: limit.ActionDeny, Rate: bucket.Rate{Count: 8}},
		}}
	})
	const want = `limitgate_active_cell_count{} 3
limitgate_cell_raised_limits{} 5
limitgate_cell_set_version{} 7
limitgate_cell_share{} 0.25
limitgate_cell_uncounted_total{} 4
limitgate_per_cell_limit_effective{limit="a",plan="p"} 9
`
	if got := values(t, r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestTrial checks the values of limits on trial, and that without them there is a share of 0 alone.
func TestTrial(t *testing.T) {
	r, trial := prometheus.NewRegistry(), metrics.Trial{Requests: 5, DeniedNow: 3, DeniedBefore: 2}
	metrics.RegisterTrial(r, func() metrics.Trial { return trial })
	if got := values(t, r); got != "limitgate_trial_share{} 0\n" {
		t.Errorf("without a trial\n%s", got)
	}
	trial.Version, trial.Share = "v2", 0.05
	const want = `limitgate_trial_denied{limits="new"} 3
limitgate_trial_denied{limits="old"} 2
limitgate_trial_requests{} 5
limitgate_trial_share{} 0.05
`
	if got := values(t, r); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
