package proxy

import (
	"github.com/limitgate/limitgate/controlplane/admission"
	"github.com/limitgate/limitgate/internal/denials"
	"github.com/limitgate/limitgate/internal/nearlimit"
	"github.com/limitgate/limitgate/internal/tracing"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/metrics"
)

// openLimiter makes the limiter, after the observers of its decisions.
func (p *Proxy) openLimiter(store limiter.Store, addrs *limit.AddrHasher) {
	p.denials = p.newDenials(addrs)
	p.limiter = p.newLimiter(store, addrs)
}

// newLimiter returns the limiter.
func (p *Proxy) newLimiter(store limiter.Store, addrs *limit.AddrHasher) *limiter.Limiter {
	return limiter.New(limiter.Options{
		Store:        store,
		Backstop:     p.backstop,
		Observer:     p.observer(),
		ObserveItems: p.limits.Cell() != nil,
		Addrs:        addrs,
		Timeout:      p.settings.DecisionTimeout,
		RetryJitter:  p.settings.RetryJitter,
		Instances:    p.count.Healthy,
		Trial:        p.rolloutWatch.comparison.Observe,
		Unlisted:     p.limits.Unlisted(),
		Sample:       newSampledRequests(p.limits.Set, p.limits.Unlisted() != nil, p.log).look,
		// A decision in this process costs as little as a lookup in the deny cache, so a
		// memory store has none.
		DenyCacheSize: p.denyCacheSize(),
		DenyTTL:       p.settings.DenyCacheMaxTTL,
	}, p.limits.Set())
}

// newDenials returns the sample of denials, which logs them if a setting asks for it.
func (p *Proxy) newDenials(addrs *limit.AddrHasher) *denials.Ring {
	if p.settings.LogDenials {
		return denials.New(addrs, p.log)
	}
	return denials.New(addrs, nil)
}

// observer returns the observer of decisions.
func (p *Proxy) observer() limiter.Observer {
	watch := nearlimit.Options{Scope: p.settings.Cell, Count: p.decisions.NearLimit, Log: p.log}
	if p.webhook != nil {
		watch.Send = p.sendNearLimit
	}
	near := nearlimit.New(watch)
	o := &decisionObserver{Decisions: p.decisions, denials: p.denials, near: near, tracer: p.tracer}
	if c := p.limits.Cell(); c != nil {
		o.admitted = c.admitted
	}
	return o
}

func (p *Proxy) denyCacheSize() int {
	if p.cluster == nil {
		return 0
	}
	return p.settings.DenyCacheSize
}

// decisionObserver passes decisions to the metrics, to the sample of denials, to the watch of buckets
// that are nearly used up, to the cell and to the tracer; the last two may be nil.
type decisionObserver struct {
	*metrics.Decisions
	denials  *denials.Ring
	near     *nearlimit.Watch
	admitted *admission.Counter
	tracer   *tracing.Tracer
}

// Observe counts one decision.
func (o *decisionObserver) Observe(set *limit.Set, req *limit.Request, now int64, d *limit.Decision, items []limit.Item) {
	o.Decisions.Observe(set, req, now, d, items)
	o.denials.Observe(set, req, now, d, items)
	o.near.Observe(set, req, now, d, items)
	if o.admitted != nil {
		o.admitted.Observe(d, items)
	}
	if o.tracer != nil {
		o.tracer.Observe(req, now, d)
	}
}
