// Package backstop decides without the store, while it is unavailable. It admits requests
// within this instance's share of each limit, and no more: each bucket becomes a token
// bucket in this process, with an n-th of its limit for each of n instances. Limits that
// fail closed are denied. Memory is bounded.
package backstop

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// retryClosed is the wait for callers of a limit that fails closed, in ms. It is short
// because the store is called again at once.
const retryClosed = 100

// Backstop decides for one of several instances. It is safe for concurrent use.
type Backstop struct {
	opts        Options
	shares      shares
	concurrency concurrency
	totalRate   *fairLimiter // nil without a bound
	capped      atomic.Int64
}

// Options configure a Backstop.
type Options struct {
	// Instances returns how many instances share the limits. It is called for each
	// decision, on any goroutine. Values below 1 count as 1, and so does nil.
	Instances func() int
	// TotalRate bounds the units a second that this instance admits for all tenants
	// together while the store is unavailable, at most MaxTotalRate; 0 means no bound. It
	// is divided fairly between the tenants that send requests.
	TotalRate int64
	// Buckets bounds the buckets; 0 means DefaultBuckets.
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
	b := &Backstop{opts: opts}
	b.shares.init(opts.Buckets)
	b.concurrency.init()
	if opts.TotalRate > 0 {
		b.totalRate = newTotal(opts.TotalRate)
	}
	return b
}

// instances returns how many instances share the limits.
func (b *Backstop) instances() int64 { return int64(max(1, b.opts.Instances())) }

// Decide fills in verdict and source of the items of a request's calls, and takes the
// units of each call in which no item denies. The units that a request took of the total
// rate are spent, even if another part denies the request.
func (b *Backstop) Decide(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call) {
	counted := b.countsTotal(at, items, calls)
	if !b.decideCalls(at, items, calls, true) || !counted {
		return
	}
	if wait := b.totalRate.take(at.Now, cmp.Or(req.Tenant, req.Key), req.Cost); wait > 0 {
		b.capped.Add(1)
		for _, c := range calls {
			call := items[c.First:c.Last]
			b.giveBack(call, c)
			markCapped(call, wait)
		}
	}
}

// Peek fills in the verdicts that Decide would, and takes nothing.
func (b *Backstop) Peek(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call) {
	counted := b.countsTotal(at, items, calls)
	if !b.decideCalls(at, items, calls, false) || !counted {
		return
	}
	if wait := b.totalRate.peek(at.Now, cmp.Or(req.Tenant, req.Key), req.Cost); wait > 0 {
		for _, c := range calls {
			markCapped(items[c.First:c.Last], wait)
		}
	}
}

// countsTotal reports whether there is a bound of all tenants together, and no call repeats one that holds slots:
// the bound has counted that.
func (b *Backstop) countsTotal(at limit.DecisionTime, items []limit.Item, calls []limit.Call) bool {
	if b.totalRate == nil {
		return false
	}
	for _, c := range calls {
		if len(c.RecordKey) > 0 && hasSlots(items[c.First:c.Last]) && b.concurrency.holds(c.RecordKey, at.Now) {
			return false
		}
	}
	return true
}

// decideCalls decides the calls, and reports whether none of their items denies, and a limit is enforced.
func (b *Backstop) decideCalls(at limit.DecisionTime, items []limit.Item, calls []limit.Call, take bool) bool {
	admits, enforced := true, false
	for _, c := range calls {
		call := items[c.First:c.Last]
		admits = b.decide(at, call, c, take) && admits
		for i := range call {
			enforced = enforced || call[i].Enforced()
		}
	}
	return admits && enforced
}

// giveBack returns the units that a call took.
func (b *Backstop) giveBack(call []limit.Item, c limit.Call) {
	b.releaseSlots(call, c.RecordKey)
	for i := range call {
		if it := &call[i]; it.Allowed && !isSlot(it) {
			b.shares.refund(it)
		}
	}
}

// markCapped denies a call that its limits admit, since the bound of all tenants together does. The verdicts of limits
// that are not enforced stay.
func markCapped(call []limit.Item, wait int64) {
	for i := range call {
		it := &call[i]
		if it.Capped = true; it.Enforced() {
			it.Verdict = bucket.Verdict{Remaining: it.Remaining, Reset: it.Reset, Wait: wait}
		}
	}
}

// decide decides a call, and reports whether none of its items denies.
func (b *Backstop) decide(at limit.DecisionTime, call []limit.Item, c limit.Call, take bool) (admits bool) {
	closed := false
	for i := range call {
		closed = closed || failsClosed(&call[i])
	}
	if hasSlots(call) {
		admits = b.decideSlots(at, call, c, take && !closed)
	} else {
		admits = b.shares.decide(call, b.instances(), at.Now, take && !closed)
	}
	for i := range call {
		call[i].Source = limit.SourceBackstop
		if failsClosed(&call[i]) {
			call[i].Verdict, call[i].Source = bucket.Verdict{Wait: retryClosed}, limit.SourcePolicy
		}
	}
	return admits && !closed
}

// decideSlots decides a call that includes limits of concurrency.
func (b *Backstop) decideSlots(at limit.DecisionTime, call []limit.Item, c limit.Call, take bool) (admits bool) {
	s, n := &b.concurrency, b.instances()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := limit.Monotonic(&s.last, at.Now)
	free := s.check(call, c, n, now)
	admits = b.shares.decide(call, n, at.Now, take && free) && free
	if admits && take {
		s.take(call, c, n, now)
	}
	return admits
}

// releaseSlots releases the slots that a call holds under a record key.
func (b *Backstop) releaseSlots(call []limit.Item, once []byte) {
	if len(once) > 0 && hasSlots(call) {
		b.concurrency.release(once)
	}
}

// Settle changes the slots that this instance granted while the store was unavailable,
// and reports whether there were any. The backstop has no records of reservations.
func (b *Backstop) Settle(at limit.DecisionTime, what *limit.Settlement) bool {
	return what.Hold == limit.HoldSlot && b.concurrency.settle(what, at.Now)
}

func failsClosed(it *limit.Item) bool {
	return it.Enforced() && it.Limit.OnError == limit.OnErrorClosed
}

// Share decides the items of one call by this instance's share, whether or not the store
// is available, because of the placement of their limits. It takes the units if take is
// set.
func (b *Backstop) Share(at limit.DecisionTime, items []limit.Item, take bool) {
	b.shares.decide(items, b.instances(), at.Now, take)
	for i := range items {
		items[i].Source, items[i].Local = limit.SourceLease, true
	}
}

// Reset deletes the buckets of a tenant or of one limit, see limiter.Backstop.
func (b *Backstop) Reset(_ context.Context, tenant, id string) (int64, error) {
	match := limit.BucketsOf(tenant, id)
	return b.shares.reset(match) + b.concurrency.reset(match), nil
}

// Forget deletes this instance's share of a bucket, see limiter.Backstop.
func (b *Backstop) Forget(name string) { b.shares.forget(name) }

// Refund returns the units that Decide or Share took for the items.
func (b *Backstop) Refund(items []limit.Item) {
	for i := range items {
		if it := &items[i]; isSlot(it) {
			b.concurrency.release(it.RecordKey)
		} else {
			b.shares.refund(it)
		}
	}
}

// Capped returns how many requests were denied only because this instance had admitted
// Options.TotalRate for all tenants together.
func (b *Backstop) Capped() int64 { return b.capped.Load() }
