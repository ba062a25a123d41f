package metrics_test

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/metrics"
)

// TestLimits: the values of limits of plans and shared ones, and not those of tenants.
func TestLimits(t *testing.T) {
	set, _, err := config.ParseLimits("limits.yaml", []byte(`version: 1
default_plan: free
plans:
  free:
    - {id: burst, by: [tenant], rate: 10/s, burst: 30, on_error: open}
    - {id: month, by: [tenant], group: g, rate: 2592000/month, algorithm: fixed_window, on_error: open}
    - {id: slots, by: [tenant], algorithm: concurrency, slots: 4, on_error: open}
tenants:
  acme: {plan: free, overrides: {burst: {rate: 99/s}}}
shared:
  - {id: ip, by: [ip], rate: 120/m, on_error: open}
  - {id: ban, action: deny, when: {ip: 192.0.2.0/24}}
`), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewRegistry()
	metrics.RegisterLimits(r, func() []*limit.Limit { return set.Limits })
	if err := testutil.GatherAndCompare(r, strings.NewReader(`# HELP limitgate_limit_capacity The units that a bucket of each limit of a plan and each shared one holds.
# TYPE limitgate_limit_capacity gauge
limitgate_limit_capacity{limit="burst",plan="free"} 30
limitgate_limit_capacity{limit="ip",plan=""} 120
limitgate_limit_capacity{limit="month",plan="free"} 2.592e+06
limitgate_limit_capacity{limit="slots",plan="free"} 4
# HELP limitgate_limit_rate The units a second at which it fills up, 0 for slots; a calendar day counts as 24 hours and a month as 30 days.
# TYPE limitgate_limit_rate gauge
limitgate_limit_rate{limit="burst",plan="free"} 10
limitgate_limit_rate{limit="ip",plan=""} 2
limitgate_limit_rate{limit="month",plan="free"} 1
limitgate_limit_rate{limit="slots",plan="free"} 0
`)); err != nil {
		t.Error(err)
	}
}
