package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
)

var decisionSeconds = prometheus.NewDesc("limitgate_decision_seconds",
	"From the arrival of a request to its decision.", []string{"source"}, nil)

// latencies has a histogram for each source. It is safe for concurrent use.
type latencies struct {
	bySource [limit.NumSources]latency.Histogram
}

// Took counts n decisions of a source that took d, see limiter.Observer.
func (m *Decisions) Took(source limit.Source, d time.Duration, n int64) {
	m.latencies.bySource[source].Observe(d, n)
}

// Latencies returns how often decisions took how long, for latency.Quantile.
func (m *Decisions) Latencies() *latency.Snapshot {
	s := new(latency.Snapshot)
	for i := range m.latencies.bySource {
		m.latencies.bySource[i].AddTo(s)
	}
	return s
}

// Describe implements prometheus.Collector.
func (*latencies) Describe(to chan<- *prometheus.Desc) { to <- decisionSeconds }

// Collect implements prometheus.Collector. It sends a histogram of every source that a decision
// can have.
func (l *latencies) Collect(to chan<- prometheus.Metric) {
	for source := limit.SourceStore; source < limit.NumSources; source++ {
		to <- l.bySource[source].Metric(decisionSeconds, []*dto.LabelPair{{Name: new("source"), Value: new(source.String())}})
	}
}
