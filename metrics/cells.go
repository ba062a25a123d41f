package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/limit"
)

// Cells is the state, at a scrape, of the cells that share the limits.
type Cells struct {
	Version int64          // of the set of cells, 0 until it is published
	Active  int            // cells that share the limits
	Share   float64        // this cell's part of each limit, 0 to 1
	Missed  int64          // decisions that were not counted for the over-admission
	Limits  []*limit.Limit // of plans and shared ones
	Raised  int            // limits, overrides included, with Limit.RoundedUp
}

var (
	activeCells = newFamily(prometheus.GaugeValue, "limitgate_active_cell_count", "Cells that share the limits.")
	cellVersion = newFamily(prometheus.GaugeValue, "limitgate_cell_set_version", "The version of what was said last of the cells.")
	cellShare   = newFamily(prometheus.GaugeValue, "limitgate_cell_share", "This cell's part of each limit.")
	perCell     = newFamily(prometheus.GaugeValue, "limitgate_per_cell_limit_effective",
		"COUNT of the rate, or the slots, of each limit of a plan and each shared one, as this cell enforces it.", "plan", "limit")
	uncounted = newFamily(prometheus.CounterValue, "limitgate_cell_uncounted_total",
		"Decisions that were not counted for the over-admission of all cells, for want of room.")
	raisedLimits = newFamily(prometheus.GaugeValue, "limitgate_cell_raised_limits",
		"Limits, those of tenants included, of which the parts of all cells add up to more than the limit, since each cell has to admit something.")
)

// cellsCollector reads the cells once for each scrape.
type cellsCollector struct{ read func() Cells }

// RegisterCells registers the metrics of the Cells that read returns.
func RegisterCells(r prometheus.Registerer, read func() Cells) { r.MustRegister(&cellsCollector{read}) }

// Describe implements prometheus.Collector.
func (*cellsCollector) Describe(to chan<- *prometheus.Desc) {
	for _, f := range []family{activeCells, cellVersion, cellShare, perCell, uncounted, raisedLimits} {
		to <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (c *cellsCollector) Collect(to chan<- prometheus.Metric) {
	m := c.read()
	activeCells.send(to, float64(m.Active))
	cellVersion.send(to, float64(m.Version))
	cellShare.send(to, m.Share)
	uncounted.send(to, float64(m.Missed))
	for _, l := range m.Limits {
		if l.Action == limit.ActionLimit {
			perCell.send(to, float64(l.Rate.Count), l.Plan, l.ID)
		}
	}
	raisedLimits.send(to, float64(m.Raised))
}
