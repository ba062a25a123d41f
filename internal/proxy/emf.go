package proxy

import (
	"io"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/emf"
	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/metrics"
)

// openEMF returns the writer of metrics of the settings, or nil.
func (p *Proxy) openEMF(stdout io.Writer) (*emf.Writer, error) {
	to := p.settings.EMF.Sink
	if to == "" {
		return nil, nil
	}
	var sink emf.Sink
	var err error
	if path, ok := strings.CutPrefix(to, config.EMFFilePrefix); ok {
		if sink, err = emf.OpenFile(path); err != nil {
			return nil, err
		}
	} else if addr, ok := strings.CutPrefix(to, config.EMFTCPPrefix); ok {
		sink = emf.NewTCP(addr)
	} else {
		sink = emf.NewStream(stdout)
	}
	limits, before := &emfLimits{inCell: p.limits.Cell() != nil}, p.decisions.Latencies()
	w := emf.New(emf.Options{Service: p.settings.EMF.Service, Sink: sink, Log: p.log, Snapshot: func() emf.Snapshot {
		now := p.decisions.Latencies()
		s := p.emfSnapshot(limits)
		s.DecisionP99 = float64(latency.Quantile(0.99, now, before)) / float64(time.Millisecond)
		before = now
		return s
	}})
	metrics.Counter(p.metrics, "limitgate_emf_lines_lost_total", "Lines of metrics that found no room while their receiver took none.", w.Lost)
	return w, nil
}

// emfSnapshot reads the counters of the proxy. Only one call runs at a time.
func (p *Proxy) emfSnapshot(limits *emfLimits) emf.Snapshot {
	s := countDecisions(p.decisions.Totals())
	limits.use(p.limiter.Limits())
	limits.describe(s.Limits)
	s.Totals.LeaseRefreshes = p.limiter.LeaseRefreshes()
	s.ConfigStale = p.limits.Status().Error != ""
	s.ActiveCells = p.limits.ActiveCells()
	if p.cluster == nil {
		return s
	}
	st := p.cluster.Stats()
	for _, k := range cluster.Kinds() {
		if k != cluster.KindOverload && k != cluster.KindBreaker {
			s.Totals.StoreErrors += st.Undecided[k]
		}
	}
	for _, sh := range p.cluster.Shards() {
		if sh.State != breaker.Closed {
			s.OpenBreakers++
		}
	}
	return s
}

// countDecisions adds up counters of decisions, for each limit and for the process.
func countDecisions(totals []metrics.Total) (s emf.Snapshot) {
	index := map[string]int{}
	for _, t := range totals {
		if !t.Shadow {
			countDecided(&s.Totals, t)
		}
		if t.Limit == "" {
			continue
		}
		i, found := index[t.Limit]
		if !found {
			i = len(s.Limits)
			index[t.Limit] = i
			s.Limits = append(s.Limits, emf.Limit{ID: t.Limit, Counts: emf.Counts{Sources: map[string]int64{}}})
		}
		c := &s.Limits[i].Counts
		c.Sources[t.Source] += t.Count
		switch {
		case t.Denies && t.Shadow:
			c.WouldDeny += t.Count
		case t.Denies:
			c.Denied += t.Count
		default:
			c.Allowed += t.Count
		}
	}
	return s
}

// countDecided adds a counter of decisions of requests.
func countDecided(all *emf.Totals, t metrics.Total) {
	all.Decisions += t.Count
	if t.Denies {
		all.Denied += t.Count
	}
	switch t.Source {
	case limit.SourceBackstop.String():
		all.Backstop += t.Count
	case limit.SourceLease.String():
		all.Lease += t.Count
	}
}

// emfLimits describes the limits of one set. Making it takes long, so it lasts as long as the set.
type emfLimits struct {
	inCell bool
	set    *limit.Set
	byID   map[string]emfLimit
}

// emfLimit describes the limits of one id: those of several plans, and one on trial.
type emfLimit struct {
	plans, ops []string
	perCell    []float64
}

// use describes the limits of a set, and those on trial.
func (e *emfLimits) use(set *limit.Set) {
	if e.set == set {
		return
	}
	e.set, e.byID = set, map[string]emfLimit{}
	e.add(set.Limits)
	if next, _ := set.Trial(); next != nil {
		e.add(next.Limits)
	}
}

// describe fills in the descriptions of limits. The set has them unless they are former or inline ones.
func (e *emfLimits) describe(limits []emf.Limit) {
	for i := range limits {
		l := &limits[i]
		d := e.byID[l.ID]
		l.Plan, l.Op, l.PerCell = strings.Join(d.plans, ","), strings.Join(d.ops, ","), d.perCell
	}
}

// add describes limits of plans and shared ones: none of them is about a tenant.
func (e *emfLimits) add(limits []*limit.Limit) {
	for _, l := range limits {
		d := e.byID[l.ID]
		if l.Plan != "" {
			d.plans = addNew(d.plans, l.Plan)
		}
		for _, condition := range l.When() {
			if op, ok := strings.CutPrefix(condition, "op: "); ok { // of no other dimension
				d.ops = addNew(d.ops, op)
			}
		}
		if e.inCell && l.Action == limit.ActionLimit {
			d.perCell = addNew(d.perCell, float64(l.Rate.Count))
		}
		e.byID[l.ID] = d
	}
}

// mostDescribed bounds the plans, conditions and values of one id, of which a line has each: a line
// stays short.
const mostDescribed = 20

// addNew appends a value that is not among the others, if there is room.
func addNew[T comparable](all []T, value T) []T {
	if len(all) == mostDescribed || slices.Contains(all, value) {
		return all
	}
	return append(all, value)
}
