// Package metrics counts decisions and exports counters. Decisions are counted once,
// after they are made, from the typed decision. All other values are read from their
// owners' own counters at each scrape.
package metrics

import (
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/limit"
)

// Decisions counts decisions as limitgate_decisions_total{limit, verdict, source, mode}:
// one with mode="enforce" for each request, under the limit that bound it (empty if none
// matched), and one with mode="shadow" for each shadow limit that was evaluated. It
// counts settlements as limitgate_settlements_total{change, outcome}, and how long decisions
// took, from the arrival of their requests, as limitgate_decision_seconds{source}, and requests that
// left a bucket nearly used up as limitgate_near_limit_total{limit, mode}. It is a
// limiter.Observer, and safe for concurrent use.
type Decisions struct {
	vec         *prometheus.CounterVec
	settlements *prometheus.CounterVec
	near        *prometheus.CounterVec
	latencies   latencies
	// table holds the counters of the set in use, so that counting needs no lookup by
	// label.
	table atomic.Pointer[table]

	mu     sync.Mutex // guards the creation of a table, and the fields below
	series []series   // of vec, in the order in which they were made
	known  map[Total]bool
}

// The verdicts, as indexes and as labels.
const (
	verdictAdmit = iota
	verdictDeny
	verdictWouldDeny
	numVerdicts
)

var verdictNames = [numVerdicts]string{"admit", "deny", "would_deny"}

// numModes is the number of the modes in which limits decide.
const numModes = int(limit.ModeShadow) + 1

// table has cells for each (limit, verdict, source, mode) of one set, and near for each
// (limit, mode); the last three rows are for decisions that no limit bound, for inline limits and
// for those of descriptors.
type table struct {
	set         *limit.Set
	cells, near []atomic.Pointer[prometheus.Counter]
}

// row returns the row of a limit, nil for none, and its label.
func (t *table) row(l *limit.Limit) (row int, id string) {
	last := len(t.set.IDs)
	switch {
	case l == nil:
		return last, ""
	case l.Ordinal == limit.InlineOrdinal:
		return last + 1, l.ID
	case l.Ordinal == limit.DescriptorOrdinal:
		return last + 2, limit.DescriptorID
	default:
		return l.Ordinal, l.ID
	}
}

const rowLen = int(numVerdicts) * int(limit.NumSources) * numModes

// NewDecisions returns the family, registered with r.
func NewDecisions(r prometheus.Registerer) *Decisions {
	d := &Decisions{known: map[Total]bool{}, vec: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "limitgate_decisions_total",
		Help: "Decisions by the limit that bound them (mode enforce), and what shadow limits would have decided (mode shadow).",
	}, []string{"limit", "verdict", "source", "mode"})}
	d.settlements = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "limitgate_settlements_total",
		Help: "Changes of what is held of a request, by what became of them.",
	}, []string{"change", "outcome"})
	for change := limit.ChangeCommit; change <= limit.ChangeRenew; change++ {
		for outcome := limit.OutcomeUnknown; outcome <= limit.OutcomeAlready; outcome++ {
			d.settlements.WithLabelValues(change.String(), outcome.String()) // exports it with 0
		}
	}
	d.near = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "limitgate_near_limit_total", Help: "Admitted requests that left a bucket of a limit with warn nearly used up.",
	}, []string{"limit", "mode"})
	r.MustRegister(d.vec, d.settlements, d.near, &d.latencies)
	return d
}

// Settled counts one settlement.
func (m *Decisions) Settled(change limit.Change, outcome limit.Outcome) {
	m.settlements.WithLabelValues(change.String(), outcome.String()).Inc()
}

// NearLimit counts an admitted request that left a bucket of a limit of the set nearly used up.
func (m *Decisions) NearLimit(set *limit.Set, l *limit.Limit) {
	t := m.table.Load()
	if t == nil || t.set != set {
		t = m.use(set)
	}
	m.nearOf(t, l).Inc()
}

// nearOf returns the counter of a limit, and makes it if there is none.
func (m *Decisions) nearOf(t *table, l *limit.Limit) prometheus.Counter {
	row, id := t.row(l)
	cell := &t.near[row*numModes+int(l.Mode)]
	c := cell.Load()
	if c == nil {
		made := m.near.WithLabelValues(id, l.Mode.String())
		c = &made
		cell.Store(c)
	}
	return *c
}

// Use makes the counters of a set before its first decision.
func (m *Decisions) Use(set *limit.Set) { m.use(set) }

// Observe counts one decision.
func (m *Decisions) Observe(set *limit.Set, _ *limit.Request, _ int64, d *limit.Decision, items []limit.Item) {
	t := m.table.Load()
	if t == nil || t.set != set {
		t = m.use(set)
	}
	verdict := verdictAdmit
	if !d.Allowed {
		verdict = verdictDeny
	}
	m.count(t, d.Binding, verdict, d.Source, limit.ModeEnforce)
	for i := range items {
		it := &items[i]
		if it.Limit.Mode != limit.ModeShadow || it.Source == limit.SourceNone {
			continue // a cached denial decided the request before the item was evaluated
		}
		verdict = verdictAdmit
		if it.Denies() {
			verdict = verdictWouldDeny
		}
		m.count(t, it.Limit, verdict, it.Source, limit.ModeShadow)
	}
}

func (m *Decisions) count(t *table, l *limit.Limit, verdict int, source limit.Source, mode limit.Mode) {
	row, id := t.row(l)
	cell := &t.cells[row*rowLen+(verdict*int(limit.NumSources)+int(source))*numModes+int(mode)]
	c := cell.Load()
	if c == nil {
		made := m.seriesOf(id, verdict, source, mode)
		c = &made
		cell.Store(c)
	}
	(*c).Inc()
}

// use makes the table of a new set.
func (m *Decisions) use(set *limit.Set) *table {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t := m.table.Load(); t != nil && t.set == set {
		return t
	}
	rows := len(set.IDs) + 3
	t := &table{set: set, cells: make([]atomic.Pointer[prometheus.Counter], rows*rowLen), near: make([]atomic.Pointer[prometheus.Counter], rows*numModes)}
	m.startNear(t, set)
	if next, _ := set.Trial(); next != nil {
		m.startNear(t, next)
	}
	m.table.Store(t)
	return t
}

// startNear makes the counters of the limits of a set that warn: of plans and shared ones, whose number is
// bounded. Those of tenants have one after their first request.
func (m *Decisions) startNear(t *table, set *limit.Set) {
	for _, l := range set.Limits {
		if l.Warns() && l.Mode != limit.ModeOff {
			m.nearOf(t, l) // exports it with 0
		}
	}
}

// NewPropagation returns the histogram of how long changes of limits took to arrive, in
// seconds.
func NewPropagation(r prometheus.Registerer) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "limitgate_config_propagation_seconds", Help: "From the writing of an item of the limits to its use here.",
		Buckets: []float64{.05, .1, .2, .3, .5, .75, 1, 2, 5, 10, 30, 60, 300},
	})
	r.MustRegister(h)
	return h
}

// Gauge registers a gauge that is read at each scrape.
func Gauge(r prometheus.Registerer, name, help string, read func() float64) {
	r.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, read))
}

// Counter registers a counter that is read at each scrape.
func Counter(r prometheus.Registerer, name, help string, read func() int64) {
	r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, func() float64 { return float64(read()) }))
}

// LabelledCounter registers a counter for each value of a label. They are read at each scrape.
func LabelledCounter(r prometheus.Registerer, name, help, label string, read map[string]func() int64) {
	for value, n := range read {
		r.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{label: value}}, func() float64 {
			return float64(n())
		}))
	}
}

// RegisterInfo registers a gauge that is always 1 and has the value of a label that is read at each
// scrape, such as a version: there is one series at a time.
func RegisterInfo(r prometheus.Registerer, name, help, label string, read func() string) {
	r.MustRegister(&info{newFamily(prometheus.GaugeValue, name, help, label), read})
}

type info struct {
	family
	read func() string
}

// Describe implements prometheus.Collector.
func (i *info) Describe(to chan<- *prometheus.Desc) { to <- i.desc }

// Collect implements prometheus.Collector.
func (i *info) Collect(to chan<- prometheus.Metric) { i.send(to, 1, i.read()) }
