package metrics

import "github.com/prometheus/client_golang/prometheus"

// Admission is what all cells together admitted in the last minute.
type Admission struct {
	Cells, Buckets int
	Max, P99       float64
	Level          int // 0 calm, 1 alarm, 2 page
}

var (
	overAdmission      = newFamily(prometheus.GaugeValue, "limitgate_over_admission_ratio", "What all cells together admitted in the last minute, divided by what the limit admits: of the worst bucket, and at the 99th percentile.", "quantile")
	overAdmissionLevel = newFamily(prometheus.GaugeValue, "limitgate_over_admission_level", "How urgent that is: 0 not, 1 above 1.5, 2 above 3 or above 1.5 for ten minutes.")
	overAdmissionCells = newFamily(prometheus.GaugeValue, "limitgate_over_admission_cells", "Cells of which that is known.")
	overAdmissionOf    = newFamily(prometheus.GaugeValue, "limitgate_over_admission_buckets", "Buckets of which that is known.")
)

// admissionCollector reads an Admission once for each scrape.
type admissionCollector struct{ read func() Admission }

// RegisterAdmission registers the metrics of the Admission that read returns.
func RegisterAdmission(r prometheus.Registerer, read func() Admission) {
	r.MustRegister(&admissionCollector{read})
}

// Describe implements prometheus.Collector.
func (*admissionCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range []family{overAdmission, overAdmissionLevel, overAdmissionCells, overAdmissionOf} {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *admissionCollector) Collect(to chan<- prometheus.Metric) {
	m := c.read()
	overAdmission.send(to, m.Max, "1")
	overAdmission.send(to, m.P99, "0.99")
	overAdmissionLevel.send(to, float64(m.Level))
	overAdmissionCells.send(to, float64(m.Cells))
	overAdmissionOf.send(to, float64(m.Buckets))
}
