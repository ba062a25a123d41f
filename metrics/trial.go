package metrics

import "github.com/prometheus/client_golang/prometheus"

// Trial is the state, at a scrape, of limits on trial for some of the tenants. Its counts
// are of the last minute.
type Trial struct {
	Version                           string // "" for none
	Share                             float64
	Requests, DeniedNow, DeniedBefore int64
}

var (
	trialShare    = newFamily(prometheus.GaugeValue, "limitgate_trial_share", "The share of tenants on which limits are tried, 0 to 1; 0 while none are.")
	trialRequests = newFamily(prometheus.GaugeValue, "limitgate_trial_requests", "Requests of the last minute that limits on trial decided.")
	trialDenied   = newFamily(prometheus.GaugeValue, "limitgate_trial_denied",
		"How many of those are denied by the limits on trial (limits new), and would be by those before (limits old), as this proxy works out alone.", "limits")
)

// trialCollector reads a trial once for each scrape.
type trialCollector struct{ read func() Trial }

// RegisterTrial registers the metrics of the Trial that read returns.
func RegisterTrial(r prometheus.Registerer, read func() Trial) { r.MustRegister(&trialCollector{read}) }

// Describe implements prometheus.Collector.
func (*trialCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range []family{trialShare, trialRequests, trialDenied} {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *trialCollector) Collect(to chan<- prometheus.Metric) {
	m := c.read()
	trialShare.send(to, m.Share)
	if m.Version == "" {
		return
	}
	trialRequests.send(to, float64(m.Requests))
	trialDenied.send(to, float64(m.DeniedNow), "new")
	trialDenied.send(to, float64(m.DeniedBefore), "old")
}
