package dashboard

import (
	"cmp"
	"slices"
	"time"

	"github.com/limitgate/limitgate/internal/denials"
	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/metrics"
)

const (
	// listed is the number of rows that a list of a sample has at most.
	listed = 20
	// listedLimits is the number of limits that a sample has at most: those that deny
	// most.
	listedLimits = 100
)

// Sample is what pages receive once a second. Rates are per second, times in milliseconds.
type Sample struct {
	At int64 `json:"at_ms"`
	Point
	// Sources are the rates of decisions by their source.
	Sources    map[string]float64 `json:"sources"`
	Latency    Quantiles          `json:"latency"`
	LimitRates []LimitRate        `json:"limit_rates"`
	Operations []Operation        `json:"operations"`
	// HotBuckets get the most checks, DeniedBuckets deny most, and WouldDenyBuckets are those of
	// shadow limits.
	HotBuckets       []Bucket      `json:"hot_buckets"`
	DeniedBuckets    []Bucket      `json:"denied_buckets"`
	WouldDenyBuckets []Bucket      `json:"would_deny_buckets"`
	LastDenials      []Denial      `json:"denials"`
	Shards           []ShardSample `json:"shards"`
	Limits           LimitsState   `json:"limits"`
	Trial            TrialState    `json:"trial"`
	Cell             CellState     `json:"cell"`
	Store            string        `json:"store"`
	NoMaster         string        `json:"no_master"`
	Instances        int           `json:"instances"`
	// LeaseRefreshes is how often the store granted units for a lease, for each decision by a lease.
	LeaseRefreshes float64 `json:"refreshes_per_lease"`
	Version        string  `json:"version"` // of the program
}

// Point is one second of the charts: rates, and quantiles of its own second.
type Point struct {
	Decisions float64 `json:"decisions"`
	Denied    float64 `json:"denied"`
	WouldDeny float64 `json:"would_deny"`
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
}

// Quantiles are those of the last ten seconds.
type Quantiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
}

// LimitRate has the rates of one limit.
type LimitRate struct {
	ID        string  `json:"id"`
	Allowed   float64 `json:"allowed"`
	Denied    float64 `json:"denied"`
	WouldDeny float64 `json:"would_deny"`
	// WouldAllow is the rate of requests that a shadow limit would admit.
	WouldAllow float64 `json:"would_allow"`
}

// Operation has the rates of one operation.
type Operation struct {
	Operation string  `json:"op"`
	Rate      float64 `json:"rate"`
	Denied    float64 `json:"denied"`
	WouldDeny float64 `json:"would_deny"`
}

// Bucket has the rate of one bucket.
type Bucket struct {
	Bucket string  `json:"bucket"`
	Limit  string  `json:"limit"`
	Rate   float64 `json:"rate"`
}

// Denial is a denials.Denial.
type Denial struct {
	At         int64  `json:"at_ms"`
	Tenant     string `json:"tenant"`
	Operation  string `json:"op"`
	Address    string `json:"address"` // hashed
	Limit      string `json:"limit"`
	Plan       string `json:"plan"`
	Mode       string `json:"mode"`
	Source     string `json:"source"`
	Cost       int64  `json:"cost"`
	Remaining  int64  `json:"remaining"`
	Capacity   int64  `json:"capacity"`
	RetryAfter int64  `json:"retry_after_ms"`
	Trial      bool   `json:"trial"`
}

// ShardSample describes one master.
type ShardSample struct {
	Addr      string  `json:"addr"`
	Breaker   string  `json:"breaker"`
	Error     string  `json:"error"`
	NextProbe int64   `json:"next_probe_ms"`
	Calls     float64 `json:"calls"`
	Checks    float64 `json:"checks"`
	Errors    float64 `json:"errors"`
	Queued    int64   `json:"queued"`
	P99       float64 `json:"p99"`
}

// newSample returns the sample of a reading, whose rates are those since an earlier one. Its point
// is that since the one before.
func newSample(now, before, earlier *Reading, version string) *Sample {
	s := &Sample{
		At: now.At.UnixMilli(), Sources: map[string]float64{}, Limits: now.Limits, Trial: now.Trial, Cell: now.Cell, Store: now.Store.Kind, NoMaster: now.Store.NoMaster, Instances: now.Store.Instances, Version: version,
		Point: newPoint(now, before), Latency: quantiles(now, earlier),
		HotBuckets: buckets(now.Top.Hot), DeniedBuckets: buckets(now.Top.Denied), WouldDenyBuckets: buckets(now.Top.WouldDeny),
		Operations: operations(now.Top.Operations), LastDenials: describeDenials(now.Denials), Shards: shards(now, earlier),
	}
	seconds := secondsBetween(now, earlier)
	rates := limitRates(now, earlier, seconds)
	for _, t := range difference(now.Totals, earlier.Totals) {
		if !t.Shadow {
			s.Sources[t.Source] += float64(t.Count) / seconds
		}
	}
	if leased := s.Sources["lease"]; leased > 0 {
		s.LeaseRefreshes = float64(now.LeaseRefreshes-earlier.LeaseRefreshes) / seconds / leased
	}
	s.LimitRates = rates[:min(len(rates), listedLimits)]
	return s
}

func secondsBetween(now, earlier *Reading) float64 {
	return max(now.At.Sub(earlier.At).Seconds(), 0.001)
}

// difference returns the counts since earlier totals.
func difference(now, earlier []metrics.Total) []metrics.Total {
	had := make(map[metrics.Total]int64, len(earlier))
	for _, t := range earlier {
		n := t.Count
		t.Count = 0
		had[t] = n
	}
	changed := make([]metrics.Total, 0, len(now))
	for _, t := range now {
		key := t
		key.Count = 0
		if t.Count -= had[key]; t.Count != 0 {
			changed = append(changed, t)
		}
	}
	return changed
}

func newPoint(now, before *Reading) (p Point) {
	seconds := secondsBetween(now, before)
	for _, t := range difference(now.Totals, before.Totals) {
		rate := float64(t.Count) / seconds
		switch {
		case t.Shadow && t.Denies:
			p.WouldDeny += rate
		case t.Shadow:
		default:
			p.Decisions += rate
			if t.Denies {
				p.Denied += rate
			}
		}
	}
	p.P50 = quantile(0.5, now.Latencies, before.Latencies)
	p.P99 = quantile(0.99, now.Latencies, before.Latencies)
	return p
}

func quantile(q float64, now, before *latency.Snapshot) float64 {
	return float64(latency.Quantile(q, now, before)) / float64(time.Millisecond)
}

func quantiles(now, earlier *Reading) Quantiles {
	of := func(q float64) float64 { return quantile(q, now.Latencies, earlier.Latencies) }
	return Quantiles{of(0.5), of(0.9), of(0.99), of(0.999)}
}

// limitRates returns the rates of the limits, those that deny most first.
func limitRates(now, earlier *Reading, seconds float64) []LimitRate {
	rates := map[string]*LimitRate{}
	for _, t := range now.Totals { // limits that decide nothing now have a row, too
		rates[t.Limit] = &LimitRate{ID: t.Limit}
	}
	for _, t := range difference(now.Totals, earlier.Totals) {
		r, rate := rates[t.Limit], float64(t.Count)/seconds
		switch {
		case t.Shadow && t.Denies:
			r.WouldDeny += rate
		case t.Shadow:
			r.WouldAllow += rate
		case t.Denies:
			r.Denied += rate
		default:
			r.Allowed += rate
		}
	}
	all := make([]LimitRate, 0, len(rates))
	for _, r := range rates {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b LimitRate) int {
		return cmp.Or(cmp.Compare(b.Denied+b.WouldDeny, a.Denied+a.WouldDeny), cmp.Compare(b.Allowed, a.Allowed), cmp.Compare(a.ID, b.ID))
	})
	return all
}

func buckets(hot []limiter.HotBucket) []Bucket {
	all := []Bucket{}
	for _, h := range hot[:min(len(hot), listed)] {
		all = append(all, Bucket{h.Bucket, h.Limit, h.Rate})
	}
	return all
}

func operations(hot []limiter.HotOperation) []Operation {
	all := []Operation{}
	for _, h := range hot[:min(len(hot), listed)] {
		all = append(all, Operation(h))
	}
	return all
}

func describeDenials(last []denials.Denial) []Denial {
	all := []Denial{}
	for _, d := range last[:min(len(last), listed)] {
		all = append(all, Denial{
			At: d.At.UnixMilli(), Tenant: d.Tenant, Operation: d.Operation, Address: d.Address, Limit: d.Limit, Plan: d.Plan, Mode: d.Mode,
			Source: d.Source, Cost: d.Cost, Remaining: d.Remaining, Capacity: d.Capacity, RetryAfter: d.RetryAfter, Trial: d.Trial,
		})
	}
	return all
}

// shards describes the masters. One that is new has no rates.
func shards(now, earlier *Reading) []ShardSample {
	all, seconds := []ShardSample{}, secondsBetween(now, earlier)
	for _, sh := range now.Store.Shards {
		s := ShardSample{Addr: sh.Addr, Breaker: sh.Breaker, Error: sh.Error, NextProbe: sh.NextProbe.Milliseconds(), Queued: sh.Queued}
		for _, was := range earlier.Store.Shards {
			if was.Addr == sh.Addr && was.Calls <= sh.Calls {
				s.Calls, s.Checks = float64(sh.Calls-was.Calls)/seconds, float64(sh.Checks-was.Checks)/seconds
				s.Errors = float64(sh.Errors-was.Errors) / seconds
				s.P99 = quantile(0.99, sh.RoundTrip, was.RoundTrip)
			}
		}
		all = append(all, s)
	}
	return all
}
