package limiter

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Store decides calls against buckets that all proxies share, or that live in
// this process. Any number of goroutines may use it.
type Store interface {
	// Take decides each call, items[First:Last], all or nothing, in their
	// order: it fills in verdict and source of every item and, where no
	// enforced item of the call denies, takes the units. Items that it could
	// not decide before the deadline it leaves with SourceNone.
	Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call)
	// Start begins what Take does; it may stay here until Flush, so that calls which
	// are begun together travel together. It returns nil when every call is answered
	// already, or none will be because the deadline has passed.
	// Else done is called with the token, once and on any goroutine, when all are,
	// or never; and end must be called, after that or at the deadline: it ends the
	// waiting, and reports whether there are calls that Take must be asked for
	// again: those with Item.Again. Done is not called after it.
	Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) (end func() bool)
	// Flush sends what Ask has begun, whoever called it.
	Flush()
	// Peek fills in the verdicts that Take would, and takes nothing.
	Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call)
	// Refund gives back the units that Take took for the items, in the windows
	// in which it took them. What cannot be given back is lost and counted.
	Refund(at limit.DecisionTime, items []limit.Item)
	// Settle changes what is kept of a request that is held. Where the store does not
	// answer before the deadline the outcome is OutcomeUnknown.
	// It returns the names of buckets that it changed: what is cached of them is void.
	Settle(at limit.DecisionTime, what *limit.Settlement) (outcome limit.Outcome, changed []string)
	// Reset forgets buckets, see Limiter.Reset.
	Reset(ctx context.Context, tenant, id string) (int64, error)
	// Forget forgets the bucket with a name, which is all of its key, and reports
	// whether there was one.
	Forget(ctx context.Context, name string) (bool, error)
	// Saturated reports whether the shard that holds an item's bucket has more to
	// do than it can.
	Saturated(it *limit.Item) bool
	// Pause returns for how long an item's shard will not be asked, because it has
	// not answered; 0 where it will.
	Pause(it *limit.Item) time.Duration
	// Locate names the place where an item's bucket lives, for people.
	Locate(it *limit.Item) string
}

// Backstop decides while the store is sick. Any number of goroutines may use it.
type Backstop interface {
	// Decide fills in verdict and source of the items of those of a request's calls,
	// items[First:Last], that the store did not decide.
	Decide(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call)
	// Peek fills in what Decide would, and takes nothing.
	Peek(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call)
	// Share decides the items of one call by this instance's share, healthy or not,
	// and takes the units if take is set.
	Share(at limit.DecisionTime, items []limit.Item, take bool)
	// Reset forgets this instance's buckets, as Store.Reset does.
	Reset(ctx context.Context, tenant, id string) (int64, error)
	// Forget forgets this instance's share of a bucket.
	Forget(name string)
	// Refund gives back what Decide or Share took for the items.
	Refund(items []limit.Item)
	// Settle changes what Decide held of a request, and reports whether there was
	// anything.
	Settle(at limit.DecisionTime, what *limit.Settlement) bool
}

// Observer is told every decision and every settlement, once. Any number of goroutines
// may call it.
type Observer interface {
	Observe(set *limit.Set, d *limit.Decision, items []limit.Item)
	Settled(change limit.Change, outcome limit.Outcome)
}

// longName is the length in bytes from which a bucket's name is not kept: it is neither
// leased nor are its refusals remembered, so that what is kept is bounded in bytes.
const longName = 512

// Options configure a Limiter.
type Options struct {
	Store    Store
	Backstop Backstop // may be nil for a store that decides everything
	Observer Observer // may be nil
	Addrs    *limit.AddrHasher
	// Timeout bounds the whole decision, from the moment Decide is called.
	Timeout time.Duration
	// RetryJitter is the largest jitter on a retry_after, counted in whole
	// milliseconds; 0 means none.
	RetryJitter time.Duration
	// Random returns a number from 0 up to 1 for the jitter, on any goroutine; nil
	// means one that differs between processes.
	Random func() float64
	// Now tells the time; nil means the clock of this machine.
	Now func() time.Time
	// DenyCacheSize is how many refusals of the store are remembered; 0 for none.
	DenyCacheSize int
	// DenyTTL is how long at most; 0 means DefaultDenyTTL.
	DenyTTL time.Duration
	// Trial is told every request that limits on trial have decided, see limit.Set.Try, on
	// any goroutine; it may be nil. The request is valid until it returns.
	Trial func(set *limit.Set, req *limit.Request)
	// Unlisted is told the tenants of requests that the limits do not list, on any
	// goroutine; it must not wait, and may be nil. The name is valid until it returns.
	Unlisted func(tenant string)
	// Instances returns how many proxies share the limits, for the size of leases;
	// what is below 1 counts as 1, and so does nil.
	Instances func() int
}

// Limiter decides requests. Any number of goroutines may use it, each with
// batches of its own. Run must run for leases to be handed back.
type Limiter struct {
	opts       Options
	set        atomic.Pointer[limit.Set]
	retries    *retryScheduler
	deny       *denyCache // nil without
	leases     *leases
	hotBuckets hotBuckets
	epoch      time.Time // an hour before the limiter was made
}

// New returns a limiter that decides by set.
func New(opts Options, set *limit.Set) *Limiter {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Instances == nil {
		opts.Instances = func() int { return 1 }
	}
	if opts.DenyTTL <= 0 {
		opts.DenyTTL = DefaultDenyTTL
	}
	l := &Limiter{
		opts: opts, retries: newRetryScheduler(opts.RetryJitter, opts.Random, opts.Instances),
		deny: newDenyCache(opts.DenyCacheSize, opts.DenyTTL), leases: newLeases(opts.Instances), epoch: opts.Now().Add(-time.Hour),
	}
	l.set.Store(set)
	return l
}

// instant returns a moment in microseconds for the cache and the leases: by a
// clock that nobody sets.
func (l *Limiter) instant(t time.Time) int64 { return t.Sub(l.epoch).Microseconds() }

// SetLimits makes later decisions use set. Units that are held by the old limits
// go back.
func (l *Limiter) SetLimits(set *limit.Set) {
	l.set.Store(set)
	select {
	case l.leases.changed <- struct{}{}:
	default:
	}
}

// Limits returns the set in use.
func (l *Limiter) Limits() *limit.Set { return l.set.Load() }

// moment returns the present.
func (l *Limiter) moment() limit.DecisionTime {
	now := l.opts.Now()
	return limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: l.opts.Timeout}
}

// Decide decides b.Requests, as if one after the other, into b.Decisions.
func (l *Limiter) Decide(b *Batch) {
	at := l.moment()
	set := l.set.Load()

	// 1. Which limits apply, and which buckets do they mean?
	b.resolve(set, l.opts.Addrs, at.Now)

	// 2. Known refusals end here: nothing is spent on them.
	b.denyFromCache(l.deny, l.leases, l.instant(at.Start), true)

	l.decide(b, set, at)
}

// decide makes the decisions that are pending.
func (l *Limiter) decide(b *Batch, set *limit.Set, at limit.DecisionTime) {
	for len(b.pending) > 0 {
		// 3. Units that this proxy holds already need no call.
		calls := l.callsForStore(at, b, true)

		// 4. Ask the store, one call for each tenant, all slots at once.
		l.opts.Store.Take(at, b.buf.Items, calls)
		l.cacheResults(b, calls, at)

		// 5. What the store could not answer, the backstop does.
		l.useBackstop(b, at, Backstop.Decide)

		// 6. The strictest verdict wins. A denial keeps nothing: what it was
		// granted elsewhere goes back, and requests behind it in the batch
		// that met those units are decided again.
		b.merge()
		l.refundDenied(at, b)
	}

	// 7. Spread the retries, and count, once.
	l.report(b, set, at)
}

// callsForStore decides the pending requests' calls that need no store, and
// returns the others. Refused requests have none. Unless take is set nothing is
// taken.
func (l *Limiter) callsForStore(at limit.DecisionTime, b *Batch, take bool) []limit.Call {
	b.calls = b.calls[:0]
	for _, i := range b.pending {
		if b.Decisions[i].Source == limit.SourceCache {
			continue
		}
		for _, c := range b.requestCalls(i) {
			items := b.buf.Items[c.First:c.Last]
			switch {
			case c.RecordKey != nil && take: // only the store knows whether it was answered before
				b.calls = append(b.calls, c)
			case c.Local || l.useLocalShare(items):
				l.opts.Backstop.Share(at, items, take)
			case !take || !l.leases.take(items, l.instant(at.Start)):
				b.calls = append(b.calls, c)
			}
		}
	}
	return b.calls
}

// useLocalShare reports whether a call is of limits that each instance may decide
// while their shard of the store is saturated, and it is.
func (l *Limiter) useLocalShare(items []limit.Item) bool {
	for i := range items {
		if items[i].Limit.Store != limit.PlacementAutoLocal {
			return false
		}
	}
	return l.opts.Store.Saturated(&items[0])
}

// cacheResults keeps what the store refused, drops what is known of buckets that it took from,
// and keeps the units that it granted ahead.
func (l *Limiter) cacheResults(b *Batch, calls []limit.Call, at limit.DecisionTime) {
	received := int64(0)
	// What the store took is of interest only where a refusal is kept.
	caching := l.deny != nil && l.deny.latest.Load() > l.instant(at.Start)
	for _, c := range calls {
		items := b.buf.Items[c.First:c.Last]
		caching = caching || l.deny != nil && refuses(items)
		leased := items[0].Limit.Lease.On
		if !caching && !leased {
			continue
		}
		if received == 0 {
			received = l.instant(l.opts.Now())
		}
		if caching {
			l.deny.learn(items, l.instant(at.Start), received)
		}
		if leased {
			l.leases.put(items, l.instant(at.Start), received)
		}
	}
}

func refuses(items []limit.Item) bool {
	for i := range items {
		if items[i].Denies() {
			return true
		}
	}
	return false
}

// Peek fills b.Decisions with what Decide would answer, and takes nothing.
func (l *Limiter) Peek(b *Batch) { l.peek(b, l.set.Load(), l.deny) }

// peek peeks by set, and asks deny first, unless it is nil.
func (l *Limiter) peek(b *Batch, set *limit.Set, deny *denyCache) {
	at := l.moment()
	b.resolve(set, l.opts.Addrs, at.Now)
	b.denyFromCache(deny, l.leases, l.instant(at.Start), false)
	calls := l.callsForStore(at, b, false)
	l.opts.Store.Peek(at, b.buf.Items, calls)
	l.useBackstop(b, at, Backstop.Peek)
	b.merge()
	for i := range b.Decisions {
		if b.Requests[i].Inline == nil {
			b.Decisions[i].RetryAfter = l.retries.peek(&b.Decisions[i])
		}
	}
}

// Reset forgets the buckets of a tenant, or of one of its limits when id is
// not empty; without a tenant those of the shared limit id. It returns how many
// there were, and with an error how many of them are gone. The store walks all keys of a
// node for it, which a tenant without limits is not worth.
func (l *Limiter) Reset(ctx context.Context, tenant, id string) (int64, error) {
	if tenant != "" && !l.set.Load().CountsTenant(tenant) {
		return 0, nil
	}
	defer l.forget(tenant, id)
	l.forget(tenant, id)
	n, err := l.opts.Store.Reset(ctx, tenant, id)
	if err != nil || l.opts.Backstop == nil {
		return n, err
	}
	local, err := l.opts.Backstop.Reset(ctx, tenant, id)
	return n + local, err
}

// Forget forgets the bucket that limits which come with requests have for a key, and
// reports whether there was one.
func (l *Limiter) Forget(ctx context.Context, key string) (bool, error) {
	name := limit.InlineName(key)
	forget := func() {
		if l.deny != nil {
			l.deny.forgetOne(name, l.instant(l.opts.Now()))
		}
	}
	defer forget()
	forget()
	if l.opts.Backstop != nil {
		l.opts.Backstop.Forget(name)
	}
	return l.opts.Store.Forget(ctx, name)
}

// forget drops what this proxy knows and holds of buckets that are reset.
func (l *Limiter) forget(tenant, id string) {
	if l.deny != nil {
		l.deny.forget(l.instant(l.opts.Now()))
	}
	key := limit.SharedKeyPrefix(id)
	if tenant != "" {
		key = limit.TenantKey(tenant)
	}
	l.retries.forget(key)
	l.leases.forget(func(it *limit.Item) bool {
		return strings.HasPrefix(string(it.Name), key) && (id == "" || it.Limit.ID == id)
	})
}

// report adds the jitter to the waits and reports the decisions.
func (l *Limiter) report(b *Batch, set *limit.Set, at limit.DecisionTime) {
	for i := range b.Decisions {
		d := &b.Decisions[i]
		items := b.Items(i)
		if !d.Allowed && d.RetryAfter > 0 && b.Requests[i].Inline == nil { // who brings a limit computes with the true wait
			d.RetryAfter = l.retries.retry(&items[d.Item], d.RetryAfter, at.Now/1000)
		}
		if l.opts.Observer != nil {
			l.opts.Observer.Observe(set, d, items)
		}
	}
	l.observeTrial(b, set)
	l.observeUnlisted(b, set)
	l.hotBuckets.count(b, at.Start)
}
