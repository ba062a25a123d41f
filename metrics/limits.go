package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/limit"
)

var (
	limitCapacity = newFamily(prometheus.GaugeValue, "limitgate_limit_capacity",
		"The units that a bucket of each limit of a plan and each shared one holds.", "plan", "limit")
	limitRate = newFamily(prometheus.GaugeValue, "limitgate_limit_rate",
		"The units a second at which it fills up, 0 for slots; a calendar day counts as 24 hours and a month as 30 days.", "plan", "limit")
)

// limitsCollector reads the limits once for each scrape.
type limitsCollector struct{ read func() []*limit.Limit }

// RegisterLimits registers the values of the limits that read returns: those of plans and shared
// ones, so that their number does not depend on that of tenants.
func RegisterLimits(r prometheus.Registerer, read func() []*limit.Limit) {
	r.MustRegister(&limitsCollector{read})
}

// Describe implements prometheus.Collector.
func (*limitsCollector) Describe(to chan<- *prometheus.Desc) {
	to <- limitCapacity.desc
	to <- limitRate.desc
}

// Collect implements prometheus.Collector.
func (c *limitsCollector) Collect(to chan<- prometheus.Metric) {
	for _, l := range c.read() {
		if l.Action != limit.ActionLimit {
			continue
		}
		limitCapacity.send(to, float64(l.Params.Capacity), l.Plan, l.ID)
		rate := 0.0
		if seconds := l.Window().Seconds(); seconds > 0 {
			rate = float64(l.Rate.Count) / seconds
		}
		limitRate.send(to, rate, l.Plan, l.ID)
	}
}
