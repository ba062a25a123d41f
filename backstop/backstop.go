// Package backstop decides without the store, while it is sick. It promises
// that callers are not refused for a fault beyond this instance's fair share,
// and not admitted without bound either: each bucket becomes a token bucket in
// this process, with an n-th of its limit for each of n instances. Limits that
// fail closed are denied. Memory is bounded.
package backstop

import (
	"context"
	"sync/atomic"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

const (
	// localBuckets bounds the buckets of limits that each instance decides alone.
	localBuckets = 100_000
	// retryClosed is when the callers of a limit that fails closed should come
	// back, in ms: the store is asked again at once, so soon.
	retryClosed = 100
)

// Backstop decides for one instance of several. Any number of goroutines may
// use it.
type Backstop struct {
	opts   Options
	shares shares        // of limits whose store is sick
	local  *memory.Store // shares of limits that want no store
	total  *total        // nil without
	capped atomic.Int64
}

// Options configure a Backstop.
type Options struct {
	// Instances returns how many instances share the limits. It is called for each
	// decision, on any goroutine; what is below 1 counts as 1, and so does nil.
	Instances func() int
	// TotalRate bounds what this instance admits for all tenants together while the
	// store is sick, in units a second, at most MaxTotalRate; 0 means no bound. It is
	// divided fairly between those who ask.
	TotalRate int64
	// Buckets bounds how many buckets are kept; 0 means DefaultBuckets.
	Buckets int
}

// New returns the backstop of one of several instances.
func New(opts Options) *Backstop {
	if opts.Instances == nil {
		opts.Instances = func() int { return 1 }
	}
	if opts.Buckets <= 0 {
		opts.Buckets = DefaultBuckets
	}
	b := &Backstop{opts: opts, local: memory.New(memory.Options{Buckets: localBuckets})}
	b.shares.init(opts.Buckets)
	if opts.TotalRate > 0 {
		b.total = newTotal(opts.TotalRate)
	}
	return b
}

// instances returns how many instances share the limits.
func (b *Backstop) instances() int64 { return int64(max(1, b.opts.Instances())) }

// Decide fills in verdict and source of the items of a request's calls, and takes
// the units of each call in which nothing denies.
func (b *Backstop) Decide(at limit.Moment, req *limit.Request, items []limit.Item, calls []limit.Call) {
	admits := true
	for _, c := range calls {
		admits = b.decide(at, items[c.First:c.Last], true) && admits
	}
	if !admits || b.total == nil {
		return
	}
	wait := b.total.take(at.Now, req.Tenant, req.Cost)
	if wait == 0 {
		return
	}
	b.capped.Add(1)
	for _, c := range calls {
		call := items[c.First:c.Last]
		b.Refund(call)
		for i := range call {
			call[i].Verdict = limit.Verdict{Remaining: call[i].Remaining, Reset: call[i].Reset, Wait: wait}
		}
	}
}

// Peek fills in what Decide would, but for the bound of all tenants together, and
// takes nothing.
func (b *Backstop) Peek(at limit.Moment, _ *limit.Request, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		b.decide(at, items[c.First:c.Last], false)
	}
}

// decide decides a call, and reports whether nothing in it denies.
func (b *Backstop) decide(at limit.Moment, call []limit.Item, take bool) (admits bool) {
	closed := false
	for i := range call {
		closed = closed || failsClosed(&call[i])
	}
	admits = b.shares.decide(call, b.instances(), at.Now, take && !closed)
	for i := range call {
		call[i].Source = limit.SourceBackstop
		if failsClosed(&call[i]) {
			call[i].Verdict, call[i].Source = limit.Verdict{Wait: retryClosed}, limit.SourcePolicy
		}
	}
	return admits && !closed
}

func failsClosed(it *limit.Item) bool {
	return it.Enforced() && it.Limit.OnError == limit.OnErrorClosed
}

// Share decides the items of one call by this instance's share, healthy or not:
// their limits want it so. It takes the units if take is set.
func (b *Backstop) Share(at limit.Moment, items []limit.Item, take bool) {
	shares := b.localShares(items)
	call := []limit.Call{{First: 0, Last: len(items)}}
	if take {
		b.local.Take(at, shares, call)
	} else {
		b.local.Peek(at, shares, call)
	}
	for i := range items {
		items[i].Verdict, items[i].Source, items[i].Local = shares[i].Verdict, limit.SourceLease, true
	}
}

// localShares returns the items with this instance's share of their limits.
func (b *Backstop) localShares(items []limit.Item) []limit.Item {
	shares := make([]limit.Item, len(items))
	n := b.instances()
	for i := range items {
		shares[i] = items[i]
		shares[i].Limit = items[i].Limit.Share(n, items[i].Cost)
	}
	return shares
}

// Reset forgets the buckets of a tenant or of one limit, see limiter.Backstop.
func (b *Backstop) Reset(ctx context.Context, tenant, id string) (int64, error) {
	n, err := b.local.Reset(ctx, tenant, id)
	return n + b.shares.reset(limit.BucketsOf(tenant, id)), err
}

// Refund gives back what Decide or Share took for the items.
func (b *Backstop) Refund(items []limit.Item) {
	for i := range items {
		if items[i].Local {
			b.local.Refund(limit.Moment{}, b.localShares(items[i:i+1]))
		} else {
			b.shares.refund(&items[i])
		}
	}
}

// Capped returns how many requests were denied only because this instance had
// admitted Options.TotalRate for all tenants together.
func (b *Backstop) Capped() int64 { return b.capped.Load() }
