package metrics

import "github.com/prometheus/client_golang/prometheus"

// Shard is what is told of one master of the store when metrics are read.
type Shard struct {
	Addr string
	// State is that of its breaker: 0 closed, 1 open, 2 half-open.
	State int
	// Transitions counts how often the breaker came into each state, by its word.
	Transitions map[string]int64
}

var (
	breakerState = prometheus.NewDesc("limitgate_breaker_state",
		"The breaker of each master of the store: 0 closed, 1 open, 2 half-open.", []string{"shard"}, nil)
	breakerTransitions = prometheus.NewDesc("limitgate_breaker_transitions_total",
		"How often the breaker of each master of the store came into a state.", []string{"shard", "state"}, nil)
)

// shards tells of masters as they are when it is asked: they come and go.
type shards struct{ read func() []Shard }

// RegisterShards registers the breakers of what read returns.
func RegisterShards(r prometheus.Registerer, read func() []Shard) { r.MustRegister(&shards{read}) }

// Describe implements prometheus.Collector.
func (*shards) Describe(to chan<- *prometheus.Desc) {
	to <- breakerState
	to <- breakerTransitions
}

// Collect implements prometheus.Collector.
func (s *shards) Collect(to chan<- prometheus.Metric) {
	for _, sh := range s.read() {
		to <- prometheus.MustNewConstMetric(breakerState, prometheus.GaugeValue, float64(sh.State), sh.Addr)
		for state, n := range sh.Transitions {
			to <- prometheus.MustNewConstMetric(breakerTransitions, prometheus.CounterValue, float64(n), sh.Addr, state)
		}
	}
}
