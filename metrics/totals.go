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

// Totals returns all counters of decisions, those of former limits too. It costs what a scrape of
// the family costs; Observe does not wait for it, except where it makes a new series.
func (m *Decisions) Totals() []Total {
	series := make(chan prometheus.Metric)
	go func() {
		defer close(series)
		m.vec.Collect(series)
	}()
	var all []prometheus.Metric
	for s := range series { // the family is locked until all are received
		all = append(all, s)
	}
	totals := make([]Total, 0, len(all))
	for _, s := range all {
		message := new(dto.Metric)
		if s.Write(message) != nil {
			continue // its labels would not be those of the family
		}
		t := Total{Count: int64(message.GetCounter().GetValue())}
		for _, label := range message.GetLabel() {
			switch value := label.GetValue(); label.GetName() {
			case "limit":
				t.Limit = value
			case "source":
				t.Source = value
			case "mode":
				t.Shadow = value == limit.ModeShadow.String()
			case "verdict":
				t.Denies = value != verdictNames[verdictAdmit]
			}
		}
		totals = append(totals, t)
	}
	return totals
}
