package proxy

import (
	"time"

	"github.com/limitgate/limitgate/internal/dashboard"
	"github.com/limitgate/limitgate/internal/latency"
)

// deniedShown is the number of denials of the page.
const deniedShown = 20

// newDashboard returns the page of the admin address.
func (p *Proxy) newDashboard() *dashboard.Dashboard {
	return dashboard.New(dashboard.Options{Read: p.readForDashboard, Handler: p.handler, Version: p.version})
}

// readForDashboard reads the state of the proxy.
func (p *Proxy) readForDashboard() *dashboard.Reading {
	st := p.limits.Status()
	r := &dashboard.Reading{
		At: time.Now(), Totals: p.decisions.Totals(), Latencies: p.decisions.Latencies(),
		Top: p.limiter.Top(deniedShown), Denials: p.denials.Last(deniedShown), LeaseRefreshes: p.limiter.LeaseRefreshes(),
		Limits: dashboard.LimitsState{Version: st.Version, Source: st.Source, Since: time.UnixMilli(p.limitsSince.Load()), Error: st.Error, Trial: st.Trial},
		Store:  dashboard.StoreState{Kind: p.StoreKind(), Instances: p.count.Healthy()},
	}
	if c := p.limits.Cell(); c != nil {
		r.Limits.Cell, r.Limits.Cells = c.id, p.limits.ActiveCells()
	}
	if p.cluster == nil {
		return r
	}
	for _, sh := range p.cluster.Shards() {
		d := describeShard(sh, r.At)
		trips := new(latency.Snapshot)
		sh.Traffic.RoundTrip.AddTo(trips)
		one := dashboard.Shard{
			Addr: d.Addr, Breaker: d.Breaker, Error: d.Error, NextProbe: d.NextProbe,
			Calls: sh.Traffic.Calls, Checks: sh.Traffic.Checks, Queued: sh.Traffic.Queued, RoundTrip: trips,
		}
		for _, n := range sh.Failures {
			one.Errors += n
		}
		r.Store.Shards = append(r.Store.Shards, one)
	}
	return r
}
