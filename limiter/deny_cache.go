package limiter

import (
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/limit"
)

// DefaultDenyTTL is how long a refusal is remembered at most, unless Options say
// otherwise. It bounds how long units that another proxy gave back are ignored.
const DefaultDenyTTL = time.Second

// renewPart is the part of its life, one in so many, in which an entry is renewed:
// it must be longer than a decision takes, and what it cuts off is asked in vain.
const renewPart = 50

// denyCache remembers refusals of the store: until the wait that came with one is
// over, the same bucket refuses the same cost again, whoever asks. It never
// denies what the store would admit, but for units that came back through
// another proxy. It is bounded by its size.
type denyCache struct {
	entries *lru.Cache[string, refusal]
	ttl     int64      // microseconds
	mu      sync.Mutex // orders what is learnt and what is given back
	// latest is when the last entry ends: nothing is looked up behind it.
	latest atomic.Int64
	// forgotten is when the whole cache was dropped: what was asked before counts
	// no more.
	forgotten atomic.Int64
}

// refusal is what is remembered of a denied bucket. Instants are microseconds by
// this machine's clock.
type refusal struct {
	params    limit.Params // of the limit that refused: another one may admit
	cost      int64
	until     int64 // it counts until then
	due       int64 // cost fits again then, at the earliest; limit.Never
	full      int64 // the bucket is as good as untouched then
	remaining int64
	window    int64
	// renewing says that somebody asks the store again, because the entry is about
	// to end although the bucket still refuses.
	renewing bool
	// returned says that units came back then: refusals that were asked for before
	// are not believed.
	returned int64
}

// newDenyCache returns a cache of size refusals, or nil for size 0.
func newDenyCache(size int, ttl time.Duration) *denyCache {
	if size <= 0 {
		return nil
	}
	entries, err := lru.New[string, refusal](size)
	if err != nil {
		panic(err) // of a size that is not positive
	}
	return &denyCache{entries: entries, ttl: ttl.Microseconds()}
}

// refuse gives an enforced item its verdict if it is known to be denied at now,
// and reports whether it is. With renew one of those that come shortly before an
// entry ends is told that it is not: it asks the store, and the others need not
// all ask at once when the entry has ended.
func (c *denyCache) refuse(it *limit.Item, now int64, renew bool) bool {
	if c.latest.Load() <= now || !it.Enforced() || len(it.Name) == 0 {
		return false
	}
	// The key is only compared with: Peek does not keep it.
	r, ok := c.entries.Peek(unsafe.String(&it.Name[0], len(it.Name)))
	if !ok || r.until <= now || it.Cost < r.cost || r.params != it.Limit.Params {
		return false
	}
	if renew && !r.renewing && r.until-now < c.ttl/renewPart && r.due > r.until && c.renew(it, r) {
		return false
	}
	it.Source = limit.SourceCache
	it.Verdict = limit.Verdict{
		Remaining: r.remaining, Wait: r.wait(it, now), Reset: millis(r.full - now), Window: r.window,
	}
	return true
}

// renew notes that an entry is being renewed, and reports whether it was the one
// to do so.
func (c *denyCache) renew(it *limit.Item, r refusal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.entries.Peek(string(it.Name))
	if !ok || known != r {
		return false
	}
	r.renewing = true
	c.entries.Add(string(it.Name), r)
	return true
}

// wait returns in how many ms the item's cost fits, or a little later.
func (r *refusal) wait(it *limit.Item, now int64) int64 {
	p := &r.params
	switch {
	case it.Cost > p.Capacity:
		return limit.Never
	case it.Cost == r.cost:
		return millis(r.due - now)
	case p.Algorithm == limit.AlgorithmTokenBucket:
		return millis(r.due + p.RefillTime(it.Cost-r.cost) + 1 - now)
	default:
		return millis(r.full - now)
	}
}

// millis turns microseconds into milliseconds, rounded up, and at least one: a
// refusal that still counts is not over yet.
func millis(micros int64) int64 { return max(1, (micros+999)/1000) }

// learn remembers the refusals among items, which the store was asked for at sent
// and answered by received.
func (c *denyCache) learn(items []limit.Item, sent, received int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent <= c.forgotten.Load() {
		return
	}
	for i := range items {
		it := &items[i]
		if it.Source != limit.SourceStore || it.Allowed || !it.Enforced() {
			continue
		}
		if known, ok := c.entries.Peek(string(it.Name)); ok && sent <= known.returned {
			continue
		}
		r := refusal{
			params: it.Limit.Params, cost: it.Cost, remaining: it.Remaining, window: it.Window,
			until: sent + c.ttl, due: limit.Never, full: received + it.Reset*1000,
		}
		if it.Wait != limit.Never {
			r.until, r.due = min(r.until, sent+it.Wait*1000), received+it.Wait*1000
		}
		c.entries.Add(string(it.Name), r)
		raise(&c.latest, r.until)
	}
}

// giveBack forgets the refusals of buckets that units come back to at now.
func (c *denyCache) giveBack(items []limit.Item, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range items {
		c.entries.Add(string(items[i].Name), refusal{returned: now})
	}
}

// forget drops everything.
func (c *denyCache) forget(now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	raise(&c.forgotten, now)
	c.entries.Purge()
}

// raise makes v at least to.
func raise(v *atomic.Int64, to int64) {
	for {
		was := v.Load()
		if was >= to || v.CompareAndSwap(was, to) {
			return
		}
	}
}
