package envoy

import (
	"fmt"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/limitgate/limitgate/internal/rlsconfig"
	"github.com/limitgate/limitgate/memory"
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
  - {key: free, detailed_metric: true, rate_limit: {unlimited: true}}
  - {key: replaced, detailed_metric: true, rate_limit: {unit: year, requests_per_unit: 5, name: old}}
  - {key: by, rate_limit: {unit: year, requests_per_unit: 5, replaces: [{name: old}]}}
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
	for _, descriptors := range []string{"plain=x", "remote_address=10.0.0.1", "user=ann", "user=ann", "user=bob", "user=" + strings.Repeat("x", 200), "user=\xff", "route=a method=GET"} {
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
	for range 2 { // of rules that count nothing, and of an explanation
		ask(t, s, "free=ann,replaced=bob,by=x", 0)
		if _, err := s.explain(&rls.RateLimitRequest{Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, "user=explained limit=1/99")}}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.stats.badOverrides.Load(); n != 0 {
		t.Errorf("an explanation counts %d invalid limits", n)
	}
	const want = "by  2, free  0, plain  1, remote_address  1, replaced  0, route method_* 0, route_a method_* 1, user  2, user_ann  2, user_bob  1"
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

// TestSlowScrape: requests are answered while metrics are read, however slowly.
func TestSlowScrape(t *testing.T) {
	s := newService(t, Behaviour{})
	c, problems := rlsconfig.Parse([]rlsconfig.File{{Name: "rules.yaml", Content: []byte("domain: mesh\ndescriptors: [{key: user, detailed_metric: true, rate_limit: {unit: year, requests_per_unit: 5}}]\n")}}, rlsconfig.Options{})
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	s.SetConfig(c)
	metrics, ended := make(chan prometheus.Metric), make(chan struct{})
	go func() {
		defer close(ended)
		s.Stats().Collect(metrics)
		close(metrics)
	}()
	read := 0
	<-metrics // the next one waits
	answered := make(chan string)
	go func() { answered <- ask(t, s, "user=ann", 0) }()
	select {
	case got := <-answered:
		if got != "OK, OK 4/5" {
			t.Error(got)
		}
	case <-time.After(10 * time.Second):
		t.Error("a request waits for a scrape")
		defer func() { <-answered }()
	}
	for range metrics {
		read++
	}
	if <-ended; read == 0 {
		t.Error("there are no metrics")
	}
}

// TestHitsOfBurst: hits up to what a bucket holds are counted, whatever its rate is.
func TestHitsOfBurst(t *testing.T) {
	s := extended(t, memory.New(memory.Options{}), time.Second, "version: 1\ndomains: {mesh: {rules: {b: {algorithm: token_bucket, burst: 100}}}}\n")
	ask(t, s, "b=1", 70)
	ask(t, s, "b=1 hits=18446744073709551615", 0)
	if total, over := s.stats.rules[statsKey{"mesh", "b", ""}].total.Load(), s.stats.rules[statsKey{"mesh", "b", ""}].over.Load(); total != 70+101 || over != 101 {
		t.Errorf("%d hits, %d over the limit", total, over)
	}
}
