package proxy

import (
	"cmp"
	"time"

	"github.com/limitgate/limitgate/internal/dashboard"
	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
)

// deniedShown is the number of denials of the page.
const deniedShown = 20

// newDashboard returns the page of the admin address.
func (p *Proxy) newDashboard() *dashboard.Dashboard {
	return dashboard.New(dashboard.Options{Read: p.readForDashboard, Handler: p.handler, History: p.history, CellLimits: p.cellLimits, Version: p.version})
}

// readForDashboard reads the state of the proxy.
func (p *Proxy) readForDashboard() *dashboard.Reading {
	st := p.limits.Status()
	r := &dashboard.Reading{
		At: time.Now(), Totals: p.decisions.Totals(), Latencies: p.decisions.Latencies(),
		Top: p.limiter.Top(deniedShown), Denials: p.denials.Last(deniedShown), LeaseRefreshes: p.limiter.LeaseRefreshes(),
		Limits: dashboard.LimitsState{Version: st.Version, Source: st.Source, Since: time.UnixMilli(p.limitsSince.Load()), Error: st.Error, Changes: p.history.Count()},
		Trial:  p.readTrial(),
		Store:  dashboard.StoreState{Kind: p.StoreKind(), Instances: p.count.Healthy()},
	}
	if c := p.limits.Cell(); c != nil {
		r.Cell = dashboard.CellState{Name: c.id, Active: p.limits.ActiveCells(), Share: p.limits.CellShare()}
	}
	if p.cluster == nil {
		return r
	}
	if err := p.cluster.NoMaster(); err != nil {
		r.Store.NoMaster = err.Error()
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

// readTrial reads the state of the limits on trial.
func (p *Proxy) readTrial() dashboard.TrialState {
	next, share := p.limiter.Limits().Trial()
	if next == nil {
		return dashboard.TrialState{}
	}
	t := dashboard.TrialState{Version: next.Version, Share: limit.DescribeShare(share), Since: time.UnixMilli(p.trialSince.Load()), Threshold: p.limits.Threshold()}
	if f := p.rolloutWatch.comparison.Figures(); f.Version == next.Version {
		t.Requests, t.Denied, t.DeniedBefore = f.Requests, f.DeniedNow, f.DeniedBefore
	}
	return t
}

// cellLimits returns this cell's part of the limits of plans and the shared ones, none outside cells.
func (p *Proxy) cellLimits() (all []dashboard.CellLimit) {
	if p.limits.Cell() == nil {
		return nil
	}
	for _, l := range p.limiter.Limits().Limits {
		if l.Action == limit.ActionLimit {
			all = append(all, dashboard.CellLimit{
				Limit: l.ID, Plan: l.Plan, Whole: l.Rate.Text, Count: l.Rate.Count,
				Capacity: l.Params.Capacity, WholeCapacity: cmp.Or(l.Undivided.Capacity, l.Params.Capacity),
			})
		}
	}
	return all
}
