package envoy

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/limitgate/limitgate/internal/rlsconfig"
)

// TestValuedStats: detailed_metric and value_to_metric put values into labels, bounded in number and length,
// and no address. Their counters go with their rules.
func TestValuedStats(t *testing.T) {
	const file = `
domain: mesh
descriptors:
  - {key: plain, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: remote_address, detailed_metric: true, rate_limit: {unit: year, requests_per_unit: 5}}
  - {key: user, detailed_metric: true, rate_limit: {unit: year, requests_per_unit: 5}}
  - key: route
    value_to_metric: true
    descriptors:
      - {key: method, value: "*", rate_limit: {unit: year, requests_per_unit: 5}}
`
	parse := func(file string) *rlsconfig.Config {
		t.Helper()
		c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "rules.yaml", Content: []byte(file)}}, rlsconfig.Options{})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		return c
	}
	s := newService(t, Behaviour{})
	s.SetConfig(parse(file))
	for _, descriptors := range []string{"plain=x", "remote_address=10.0.0.1", "user=ann", "user=ann", "user=bob", "user=" + strings.Repeat("x", 200), "route=a method=GET"} {
		ask(t, s, descriptors, 0)
	}
	series := func() string {
		t.Helper()
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(s.Stats())
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, f := range families {
			if f.GetName() != "ratelimit_service_rate_limit_total_hits" {
				continue
			}
			for _, m := range f.GetMetric() {
				all = append(all, fmt.Sprintf("%s %s %v", m.GetLabel()[1].GetValue(), m.GetLabel()[2].GetValue(), m.GetCounter().GetValue()))
			}
		}
		return strings.Join(all, ", ")
	}
	const want = "plain  1, remote_address  1, route method_* 0, route_a method_* 1, user  1, user_ann  2, user_bob  1"
	if got := series(); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for i := range 2 * maxValued {
		ask(t, s, fmt.Sprint("user=", i), 0)
	}
	if n := strings.Count(series(), "user_"); n > maxValued || n < maxValued-1 {
		t.Errorf("%d values are counted, want at most %d", n, maxValued)
	}
	s.SetConfig(parse("domain: mesh\ndescriptors: [{key: plain, rate_limit: {unit: year, requests_per_unit: 5}}]\n"))
	if got := series(); got != "plain  1" || s.stats.valued != 0 {
		t.Errorf("rules that are gone leave %s", got)
	}
}

// TestStats checks the counters of rules, and that those of former rules go.
func TestStats(t *testing.T) {
	s := newService(t, Behaviour{NearLimit: 0.8})
	for range 6 {
		ask(t, s, "a=1,dark=1", 0)
	}
	ask(t, s, "a=2 refund=2", 0)
	want := `
# HELP ratelimit_service_rate_limit_near_limit Hits near the limit.
# TYPE ratelimit_service_rate_limit_near_limit counter
ratelimit_service_rate_limit_near_limit{domain="mesh",key1="a",key2=""} 1
ratelimit_service_rate_limit_near_limit{domain="mesh",key1="dark",key2=""} 1
# HELP ratelimit_service_rate_limit_over_limit Hits that were over the limit.
# TYPE ratelimit_service_rate_limit_over_limit counter
ratelimit_service_rate_limit_over_limit{domain="mesh",key1="a",key2=""} 1
ratelimit_service_rate_limit_over_limit{domain="mesh",key1="dark",key2=""} 4
# HELP ratelimit_service_rate_limit_shadow_mode Hits that a rule in shadow mode would have denied.
# TYPE ratelimit_service_rate_limit_shadow_mode counter
ratelimit_service_rate_limit_shadow_mode{domain="mesh",key1="a",key2=""} 0
ratelimit_service_rate_limit_shadow_mode{domain="mesh",key1="dark",key2=""} 4
# HELP ratelimit_service_rate_limit_total_negative_hits Hits that were given back.
# TYPE ratelimit_service_rate_limit_total_negative_hits counter
ratelimit_service_rate_limit_total_negative_hits{domain="mesh",key1="a",key2=""} 2
ratelimit_service_rate_limit_total_negative_hits{domain="mesh",key1="dark",key2=""} 0
# HELP ratelimit_service_rate_limit_within_limit Hits within the limit.
# TYPE ratelimit_service_rate_limit_within_limit counter
ratelimit_service_rate_limit_within_limit{domain="mesh",key1="a",key2=""} 5
ratelimit_service_rate_limit_within_limit{domain="mesh",key1="dark",key2=""} 2
# HELP ratelimit_service_total_requests Requests.
# TYPE ratelimit_service_total_requests counter
ratelimit_service_total_requests{grpc_method="ShouldRateLimit"} 7
`
	c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "rules.yaml", Content: []byte("domain: mesh\ndescriptors:\n" +
		"- {key: a, rate_limit: {unit: year, requests_per_unit: 5}}\n- {key: dark, shadow_mode: true, rate_limit: {unit: year, requests_per_unit: 2}}\n")}}, rlsconfig.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	s.SetConfig(c)
	names := []string{"ratelimit_service_total_requests"}
	for _, name := range []string{"near_limit", "over_limit", "shadow_mode", "total_negative_hits", "within_limit"} {
		names = append(names, "ratelimit_service_rate_limit_"+name)
	}
	if err := testutil.CollectAndCompare(s.Stats(), strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
	if n := testutil.CollectAndCount(s.Stats(), "ratelimit_service_response_time_seconds"); n != 1 {
		t.Errorf("%d histograms of the response time, want 1", n)
	}
	if problems, err := testutil.CollectAndLint(s.Stats(), "ratelimit_service_response_time_seconds"); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
