package limiter

import (
	"bytes"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

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
	// waiter is for Decide; nil before its first use.
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

// denyFromCache decides the requests that deny, unless it is nil, has denials for. Their
// other items stay undecided. With renew some requests go to the store all the same, see
// denyCache.refreshAll. Units on lease can be taken whatever the store denied.
func (b *Batch) denyFromCache(deny *denyCache, held *leases, now int64, renew bool) {
	if deny == nil || deny.latest.Load() <= now {
		return
	}
	for i := range b.Requests {
		if b.Requests[i].ID != "" && !b.Requests[i].Fresh {
			continue // the store may have a record of its answer
		}
		items := b.Items(i)
		refused, never := false, false
		for j := range items {
			it := &items[j]
			fits, hit := it.Cost <= it.Limit.Params.Capacity, deny.lookup(it, now)
			if hit && fits && (b.mayTake(i, it) || it.Limit.Lease.On && held.holds(it, now)) {
				undecide(it)
				hit = false
			}
			refused = refused || hit
			never = never || !hit && !fits && it.Enforced()
		}
		if refused && never { // another limit can never admit it, and binds
			refused = false
			undecideCached(items)
		}
		if refused && renew {
			refused = !deny.refreshAll(items, now)
		}
		if refused {
			b.Decisions[i].Source = limit.SourceCache
		}
	}
}

// undecide makes an item undecided.
func undecide(it *limit.Item) { it.Source, it.Verdict = limit.SourceNone, bucket.Verdict{} }

// undecideCached makes the items undecided that the cache denied.
func undecideCached(items []limit.Item) {
	for i := range items {
		if items[i].Source == limit.SourceCache {
			undecide(&items[i])
		}
	}
}

// mayTake reports whether an earlier request than the nth, one that the cache does not
// deny, uses the bucket of an item: that request may take its units.
func (b *Batch) mayTake(n int, it *limit.Item) bool {
	for i := range n {
		if b.Decisions[i].Source == limit.SourceCache {
			continue
		}
		items := b.Items(i)
		for j := range items {
			if bytes.Equal(items[j].Name, it.Name) {
				return true
			}
		}
	}
	return false
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
