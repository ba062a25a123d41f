package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/limitgate/limitgate/limit"
)

// Total is one counter of decisions, since the start of the process. Totals never fall.
type Total struct {
	Limit  string // the id; empty where no limit bound
	Source string // the word of a limit.Source
	// Shadow reports a count of what a shadow limit would have decided. Denies reports a
	// count of denials.
	Shadow, Denies bool
	Count          int64
}

// series is a counter with its labels, as a Total without a count.
type series struct {
	labels  Total
	counter prometheus.Counter
}

// seriesOf returns the counter of some labels, and makes it if there is none.
func (m *Decisions) seriesOf(id string, verdict int, source limit.Source, mode limit.Mode) prometheus.Counter {
	counter := m.vec.WithLabelValues(id, verdictNames[verdict], source.String(), mode.String())
	labels := Total{Limit: id, Source: source.String(), Shadow: mode == limit.ModeShadow, Denies: verdict != verdictAdmit}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known[labels] {
		m.known[labels] = true
		m.series = append(m.series, series{labels, counter})
	}
	return counter
}

// Totals returns all counters of decisions, those of former limits too. Observe does not wait for it.
func (m *Decisions) Totals() []Total {
	m.mu.Lock()
	all := m.series // to which others may be appended meanwhile
	m.mu.Unlock()
	totals := make([]Total, len(all))
	var message dto.Metric
	for i, s := range all {
		_ = s.counter.Write(&message) // of a counter, which never fails
		totals[i] = s.labels
		totals[i].Count = int64(message.GetCounter().GetValue())
	}
	return totals
}
