package limiter

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Limiter decides requests. It is safe for concurrent use, each goroutine with batches of
// its own. Unused leased units are returned only while Run runs.
type Limiter struct {
	opts    Options
	fast    FastStore // nil if there is no fast path
	set     atomic.Pointer[limit.Set]
	retries *retryScheduler
	deny    *denyCache // nil without a deny cache
	leases  *leases
	top     topSketch
	epoch   time.Time // an hour before the limiter was made
}

// New returns a limiter that decides by set.
func New(opts Options, set *limit.Set) *Limiter {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Instances == nil {
		opts.Instances = func() int { return 1 }
	}
	if opts.Sample == nil {
		opts.Sample = func(*limit.Request) {}
	}
	if opts.DenyTTL <= 0 {
		opts.DenyTTL = DefaultDenyTTL
	}
	l := &Limiter{
		opts: opts, retries: newRetryScheduler(opts.RetryJitter, opts.Random, opts.Instances),
		deny: newDenyCache(opts.DenyCacheSize, opts.DenyTTL), leases: newLeases(opts.Instances), epoch: opts.Now().Add(-time.Hour),
	}
	if l.deny == nil && !opts.ObserveItems {
		l.fast, _ = opts.Store.(FastStore)
	}
	l.set.Store(set)
	l.top.every.Store(1)
	l.top.sample = opts.Sample
	return l
}

// instant returns t in microseconds of the monotonic clock, for the deny cache and the
// leases.
func (l *Limiter) instant(t time.Time) int64 { return t.Sub(l.epoch).Microseconds() }

// SetLimits makes later decisions use set. Units that are leased under the old limits are
// returned to the store.
func (l *Limiter) SetLimits(set *limit.Set) {
	l.set.Store(set)
	select {
	case l.leases.changed <- struct{}{}:
	default:
	}
}

// LeaseRefreshes returns how often the store has granted units for a lease.
func (l *Limiter) LeaseRefreshes() int64 { return l.leases.refreshes.Load() }

// Limits returns the set in use.
func (l *Limiter) Limits() *limit.Set { return l.set.Load() }

// Batch is a run of requests that are decided together, and the memory they need. It is
// reused: fill Requests, call Limiter.Decide, read Decisions, call Reset. It is not safe
// for concurrent use.
type Batch struct {
	Requests  []limit.Request
	Decisions []limit.Decision

	buf      limit.Buffer
	resolved []limit.Resolved
	calls    []limit.Call
	// pending are the requests without a final decision, in their order.
	pending  []int
	redecide []int

	// at and the fields below belong to a decision that Start has begun.
	at  limit.DecisionTime
	set *limit.Set
	// finish ends the calls to the store; nil if there are none, or when they have ended.
	finish func() (retry bool)
	// answered reports that the items have the store's answers, and that these are
	// cached.
	answered bool
	// waiter is for DecideWithin; nil before its first use.
	waiter *waiter
	// undecided is scratch space for calls for which the store must be called again, and
	// for calls that the store has not decided.
	undecided []limit.Call
	timing    timing
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.Requests) // releases the bytes that they alias
	b.Requests = b.Requests[:0]
	b.Decisions = b.Decisions[:0]
}

// Items returns the limits that applied to request i, with their verdicts. The slice is
// valid until the batch is used again.
func (b *Batch) Items(i int) []limit.Item {
	r := &b.resolved[i]
	return b.buf.Items[r.FirstItem:r.LastItem]
}

// moment returns the present as a decision time.
func (l *Limiter) moment() limit.DecisionTime {
	now := l.opts.Now()
	return limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: l.opts.Timeout}
}

// Decide decides b.Requests into b.Decisions, as if one after the other. It is Start and
// Finish for callers that can wait.
func (l *Limiter) Decide(b *Batch) {
	if !l.DecideWithin(b, l.opts.Timeout) {
		l.Await(b)
	}
}

// DecideWithin decides as Decide does, if the store answers within the duration most. It
// returns false if the caller must call Await for the decisions.
func (l *Limiter) DecideWithin(b *Batch, most time.Duration) bool {
	if b.waiter == nil {
		b.waiter = newWaiter()
	}
	if l.Start(b, time.Time{}, b.waiter.done, 0) {
		return true
	}
	// Other goroutines that have a request may start theirs first: one Flush sends the calls of all.
	runtime.Gosched()
	l.Flush()
	b.waiter.late = !b.waiter.wait(min(most, l.left(b)))
	return !b.waiter.late && l.Finish(b)
}

// Await makes the decisions that DecideWithin could not make. It waits for the store, at
// most until the deadline.
func (l *Limiter) Await(b *Batch) {
	if b.waiter.late {
		if b.waiter.late = false; !b.waiter.wait(l.left(b)) {
			b.waiter = nil
		}
		if l.Finish(b) {
			return
		}
	}
	l.FinishBlocking(b)
}

// left returns the time until the deadline of a batch.
func (l *Limiter) left(b *Batch) time.Duration { return b.at.Deadline().Sub(l.opts.Now()) }

// Start begins to decide b.Requests, which arrived at since, or now if since is zero:
// their waiting time is part of Options.Timeout. Start never waits. It returns true if
// b.Decisions are made. Otherwise it calls done with the token when the store has
// answered, at most once and on any goroutine. The caller must call Finish after that, or
// at b.Deadline. The calls to the store may wait for Flush.
func (l *Limiter) Start(b *Batch, since time.Time, done func(token uint64), token uint64) (decided bool) {
	b.set, b.at, b.answered, b.timing.waited, b.finish = l.set.Load(), l.moment(), false, false, nil
	if !since.IsZero() {
		b.at.Timeout -= b.at.Start.Sub(since)
	}

	// 1. Find the limits that apply, and their buckets.
	b.resolve(b.set, l.opts.Addrs, b.at.Now)

	// 2. Deny requests for which the deny cache has a denial. Take units held on lease.
	b.denyFromCache(l.deny, l.leases, l.instant(b.at.Start), true)
	calls := l.callsForStore(b, true)

	// 3. Call the store for the rest: one call for the buckets in the tenant's hash slot,
	// and one for each other bucket, all at once.
	if len(calls) > 0 {
		b.finish = l.opts.Store.Start(b.at, b.buf.Items, calls, done, token)
	}
	if b.timing.waited = b.finish != nil; b.timing.waited {
		return false
	}
	if l.conclude(b) {
		return true
	}
	done(token) // Finish has nothing to wait for
	return false
}

// Flush sends the calls that Start delayed, those of all batches. It is safe for
// concurrent use.
func (l *Limiter) Flush() { l.opts.Store.Flush() }

// Finish ends what Start began, whether or not the store has answered. A call of done that
// is under way may still arrive after it, with the token of its Start. Finish never waits.
// It returns false if the decisions need another call to the store, which FinishBlocking
// makes.
func (l *Limiter) Finish(b *Batch) (decided bool) {
	if b.finish == nil {
		return false // Start has the answers, and conclude returned false
	}
	retry := b.finish()
	b.finish = nil
	return !retry && l.conclude(b)
}

// FinishBlocking makes the decisions that Start and Finish could not make. It waits for
// the store, at most until the deadline.
func (l *Limiter) FinishBlocking(b *Batch) {
	if !b.answered {
		l.opts.Store.Take(b.at, b.buf.Items, b.retries())
		if l.conclude(b) {
			return
		}
	}
	for {
		// Refund the units that other hash slots granted to denied requests. Later
		// requests that were denied because of those units are decided again.
		denied := l.refundDenied(b)
		if len(b.pending) == 0 {
			l.report(b)
			return
		}
		l.opts.Store.Take(b.at, b.buf.Items, l.callsForStore(b, true))
		b.keepDenials(denied)
		if l.conclude(b) {
			return
		}
	}
}

// conclude makes the decisions from the store's answers. It returns false if units must
// be refunded first.
func (l *Limiter) conclude(b *Batch) (decided bool) {
	b.answered = true
	l.cacheResults(b)

	// 4. The backstop decides the calls that the store has not decided.
	l.useBackstop(b, Backstop.Decide)

	// 5. The strictest verdict wins.
	b.merge()
	if b.anyGrantDenied() {
		return false
	}

	// 6. Spread the retries, and count each decision once.
	b.pending = b.pending[:0]
	l.report(b)
	return true
}

// callsForStore decides the pending requests' calls that need no store, and returns the
// others. Requests that the deny cache denied have no calls. It takes units only if take
// is set.
func (l *Limiter) callsForStore(b *Batch, take bool) []limit.Call {
	b.calls = b.calls[:0]
	for _, i := range b.pending {
		if b.Decisions[i].Source == limit.SourceCache {
			continue
		}
		for _, c := range b.requestCalls(i) {
			items := b.buf.Items[c.First:c.Last]
			switch {
			case c.RecordKey != nil && take: // only the store has the record of an earlier answer
				b.calls = append(b.calls, c)
			case c.Local || l.useLocalShare(items):
				l.opts.Backstop.Share(b.at, items, take)
			case !take || !l.leases.take(items, l.instant(b.at.Start)):
				b.calls = append(b.calls, c)
			}
		}
	}
	return b.calls
}

// useLocalShare reports whether each instance may decide a call by its share, because its
// limits allow that while their shard of the store is saturated, and the shard is.
func (l *Limiter) useLocalShare(items []limit.Item) bool {
	for i := range items {
		if items[i].Limit.Store != limit.PlacementAutoLocal {
			return false
		}
	}
	return l.opts.Store.Saturated(&items[0])
}

// cacheResults caches the store's denials, drops cached state of buckets from which the
// store took units, and adds leased units that it granted.
func (l *Limiter) cacheResults(b *Batch) {
	sent, received := l.instant(b.at.Start), int64(0)
	// Units that the store took matter only if a denial is cached.
	caching := l.deny != nil && l.deny.latest.Load() > sent
	for _, c := range b.calls {
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
			l.deny.update(items, sent, received)
		}
		if leased {
			l.leases.put(items, sent, received)
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

// useBackstop has the backstop decide or peek the calls that the store left undecided;
// answer is Backstop.Decide or Backstop.Peek. Denials by limits that fail closed get a
// wait until the store is called again.
func (l *Limiter) useBackstop(b *Batch, answer func(Backstop, limit.DecisionTime, *limit.Request, []limit.Item, []limit.Call)) {
	for _, i := range b.pending {
		if b.Decisions[i].Source == limit.SourceCache {
			continue
		}
		b.undecided = b.undecided[:0]
		for _, c := range b.requestCalls(i) {
			if b.buf.Items[c.First].Source == limit.SourceNone {
				b.undecided = append(b.undecided, c)
			}
		}
		if len(b.undecided) == 0 {
			continue
		}
		answer(l.opts.Backstop, b.at, &b.Requests[i], b.buf.Items, b.undecided)
		for _, c := range b.undecided {
			l.deferRetry(b.buf.Items[c.First:c.Last])
		}
	}
}

// deferRetry makes the callers of limits that fail closed wait until the store is called
// again.
func (l *Limiter) deferRetry(call []limit.Item) {
	for i := range call {
		if it := &call[i]; it.Source == limit.SourcePolicy {
			it.Wait = max(it.Wait, l.opts.Store.Pause(it).Milliseconds()+1)
		}
	}
}

// report reports the decisions of a batch.
func (l *Limiter) report(b *Batch) {
	sample, every := l.top.draw()
	for i := range b.Decisions {
		d, items := &b.Decisions[i], b.Items(i)
		l.reportDecision(b.set, b.at.Now, &b.Requests[i], d, items)
		if i%every == sample {
			l.top.count(&b.Requests[i], d, items, b.at.Start)
		}
		b.timing.counts()[d.Source]++
	}
	b.timing.report(l, b.at.Start, l.opts.Timeout-b.at.Timeout)
}

// reportDecision adds the retry jitter to the wait of a request and reports its decision to the
// observers. Now is in microseconds.
func (l *Limiter) reportDecision(set *limit.Set, now int64, req *limit.Request, d *limit.Decision, items []limit.Item) {
	if !d.Allowed && d.RetryAfter > 0 && !req.CarriesLimits() { // a client with its own limit computes with the true wait
		d.RetryAfter = l.retries.retry(&items[d.Item], d.RetryAfter, now/1000)
		d.Unbind()
	}
	if l.opts.Observer != nil {
		l.opts.Observer.Observe(set, req, now, d, items)
	}
	l.observeTrial(set, req)
	l.observeUnlisted(set, req)
}

func (b *Batch) requestCalls(i int) []limit.Call {
	r := &b.resolved[i]
	return b.buf.Calls[r.FirstCall:r.LastCall]
}

// resolve finds the limits of every request and makes all requests pending. Now is in
// microseconds.
func (b *Batch) resolve(set *limit.Set, addrs *limit.AddrHasher, now int64) {
	b.buf.Reset()
	b.resolved, b.pending, b.Decisions = b.resolved[:0], b.pending[:0], b.Decisions[:0]
	for i := range b.Requests {
		b.resolved = append(b.resolved, set.Resolve(&b.Requests[i], addrs, now, &b.buf))
		b.pending = append(b.pending, i)
		b.Decisions = append(b.Decisions, limit.Decision{})
	}
}

// merge makes the decisions of the pending requests.
func (b *Batch) merge() {
	for _, i := range b.pending {
		b.Decisions[i] = limit.Merge(b.Items(i))
	}
}

// retries returns the calls for which the store must be called again.
func (b *Batch) retries() []limit.Call {
	b.undecided = b.undecided[:0]
	for _, c := range b.calls {
		if it := &b.buf.Items[c.First]; it.Retry {
			it.Retry = false
			b.undecided = append(b.undecided, c)
		}
	}
	return b.undecided
}

// Deadline returns the time by which Finish must be called.
func (b *Batch) Deadline() time.Time { return b.at.Deadline() }
