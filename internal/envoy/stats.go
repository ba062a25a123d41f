package envoy

import (
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/internal/rlsconfig"
)

// Stats counts hits by the rules that they met, under the names that dashboards of
// envoyproxy/ratelimit query. It is a prometheus.Collector, and safe for concurrent use.
type Stats struct {
	mu     sync.Mutex // guards rules and valued
	rules  map[statsKey]*ruleStats
	valued int // how many of them are of a value

	badOverrides, refusedRefunds, shadowed, requests, configLoads, configErrors atomic.Int64

	took latency.Histogram
}

// statsKey are the labels of the counters of a rule: the domain, and the first two levels of its path.
type statsKey struct{ domain, key1, key2 string }

// ruleStats counts hits.
type ruleStats struct {
	rule                                        *ruleStats // of a value of detailed_metric or value_to_metric; nil of a rule
	total, over, near, within, shadow, negative atomic.Int64
}

func newStats() *Stats { return &Stats{rules: map[statsKey]*ruleStats{}} }

// ofRule returns the counters of a rule. Rules of one path have the same, whichever configuration they
// are from.
func (s *Stats) ofRule(r *rlsconfig.Rule) *ruleStats {
	key := statsKey{domain: r.Domain}
	key.key1, key.key2 = r.StatKeys()
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.rules[key]
	if of == nil {
		of = &ruleStats{}
		s.rules[key] = of
	}
	return of
}

const (
	// maxValued bounds the counters of values, which clients choose: six series each.
	maxValued = 1000
	// maxStatKey bounds a label with a value, in bytes.
	maxStatKey = 128
)

// ofValues returns the counters of a rule for entries, whose values are part of its labels. Those that would
// be too many or too long are counted with the rule.
func (s *Stats) ofValues(r *rlsconfig.Rule, own *ruleStats, entries []rlsconfig.Entry) *ruleStats {
	var text [2 * maxStatKey]byte
	key := statsKey{domain: r.Domain}
	for level, to := range []*string{&key.key1, &key.key2} {
		if level >= len(entries) {
			break
		}
		if *to = string(r.AppendStatKey(text[:0], level, entries)); len(*to) > maxStatKey || !utf8.ValidString(*to) {
			return own
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.rules[key]
	switch {
	case of != nil:
	case s.valued == maxValued:
		return own
	default:
		s.valued++
		of = &ruleStats{rule: own}
		s.rules[key] = of
	}
	return of
}

// keep drops the counters of rules that are not in the configuration, so that they do not grow with the
// configurations of years.
func (s *Stats) keep(c *config) {
	used := map[*ruleStats]bool{}
	for _, r := range c.limits {
		used[r.stats] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.rules, func(_ statsKey, of *ruleStats) bool {
		gone := !used[of] && !used[of.rule]
		if gone && of.rule != nil {
			s.valued--
		}
		return gone
	})
}

// count counts a request that is answered.
func (s *Stats) count(q *question, took time.Duration) {
	s.requests.Add(1)
	s.took.Observe(took, 1)
	if q.behaviour.Shadow {
		s.shadowed.Add(1)
	}
	for i := range q.bound {
		b := &q.bound[i]
		if b.invalid {
			s.badOverrides.Add(1)
		}
		if b.met.limits == nil || b.role == roleNone {
			continue
		}
		of, most := s.of(&b.met), int64(b.policy.count)
		if b.limit != nil {
			most = max(most, b.limit.Params.Capacity)
		}
		b.hits = min(b.hits, most+1) // so that no sum overflows
		if b.role == roleRefund {
			of.negative.Add(b.hits)
		} else {
			of.count(b, q.behaviour.NearLimit)
		}
	}
}

// of returns the counters of a rule for the entries that met it.
func (s *Stats) of(m *metRule) *ruleStats {
	if m.limits.valued {
		return s.ofValues(m.rule, m.limits.stats, m.entries)
	}
	return m.limits.stats
}

// count counts the hits of a descriptor. Hits beyond nearPart of the limit are near it.
func (st *ruleStats) count(b *bound, nearPart float64) {
	st.total.Add(b.hits)
	if b.over {
		st.over.Add(b.hits)
		if b.shadow {
			st.shadow.Add(b.hits)
		}
		return
	}
	st.within.Add(b.hits)
	from := int64(math.Floor(float64(b.policy.count) * nearPart))
	if used := int64(b.policy.count) - b.remaining; used > from {
		st.near.Add(min(b.hits, used-from))
	}
}

// responseTime is the time from a request to its answer.
var (
	method       = prometheus.Labels{"grpc_method": "ShouldRateLimit"}
	responseTime = prometheus.NewDesc("ratelimit_service_response_time_seconds", "Time from a request that has arrived whole to its answer.", nil, method)
)

// The families, as envoyproxy/ratelimit names them through its mapping of statsd.
var (
	ruleLabels = []string{"domain", "key1", "key2"}
	families   = []struct {
		desc *prometheus.Desc
		read func(*ruleStats) int64
	}{
		{ruleDesc("total_hits", "Hits of descriptors that met the rule."), func(st *ruleStats) int64 { return st.total.Load() }},
		{ruleDesc("over_limit", "Hits that were over the limit."), func(st *ruleStats) int64 { return st.over.Load() }},
		{ruleDesc("near_limit", "Hits near the limit."), func(st *ruleStats) int64 { return st.near.Load() }},
		{ruleDesc("within_limit", "Hits within the limit."), func(st *ruleStats) int64 { return st.within.Load() }},
		{ruleDesc("shadow_mode", "Hits that a rule in shadow mode would have denied."), func(st *ruleStats) int64 { return st.shadow.Load() }},
		{ruleDesc("total_negative_hits", "Hits that were given back."), func(st *ruleStats) int64 { return st.negative.Load() }},
	}
	totals = []struct {
		desc *prometheus.Desc
		read func(*Stats) int64
	}{
		{prometheus.NewDesc("ratelimit_service_config_load_success", "Configurations that came into use.", nil, nil), func(s *Stats) int64 { return s.configLoads.Load() }},
		{prometheus.NewDesc("ratelimit_service_config_load_error", "Configurations that had mistakes and were not used.", nil, nil), func(s *Stats) int64 { return s.configErrors.Load() }},
		{prometheus.NewDesc("ratelimit_service_global_shadow_mode", "Requests that were admitted because all rules are in shadow mode.", nil, nil), func(s *Stats) int64 { return s.shadowed.Load() }},
		{prometheus.NewDesc("ratelimit_service_total_requests", "Requests.", nil, method), func(s *Stats) int64 { return s.requests.Load() }},
		{prometheus.NewDesc("limitgate_rls_invalid_limits_total", "Limits of descriptors whose unit does not exist: their rule applied.", nil, nil), func(s *Stats) int64 { return s.badOverrides.Load() }},
		{prometheus.NewDesc("limitgate_rls_refused_refunds_total", "Descriptors with negative hits that gave nothing back, because refunds are not allowed.", nil, nil), func(s *Stats) int64 { return s.refusedRefunds.Load() }},
	}
)

func ruleDesc(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("ratelimit_service_rate_limit_"+name, help, ruleLabels, nil)
}

// Describe implements prometheus.Collector.
func (s *Stats) Describe(to chan<- *prometheus.Desc) {
	for _, f := range families {
		to <- f.desc
	}
	for _, t := range totals {
		to <- t.desc
	}
	to <- responseTime
}

// Collect implements prometheus.Collector.
func (s *Stats) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	rules := maps.Clone(s.rules) // requests wait for the lock, and metrics take long
	s.mu.Unlock()
	for key, st := range rules {
		for _, f := range families {
			to <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, float64(f.read(st)), key.domain, key.key1, key.key2)
		}
	}
	for _, t := range totals {
		to <- prometheus.MustNewConstMetric(t.desc, prometheus.CounterValue, float64(t.read(s)))
	}
	to <- s.took.Metric(responseTime, prometheus.MakeLabelPairs(responseTime, nil))
}
