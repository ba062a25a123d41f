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
	// renewable says that the bucket will still refuse when the entry ends, so that
	// the store has to be asked again, and that nobody does yet.
	renewable bool
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
// and reports whether it is.
func (c *denyCache) refuse(it *limit.Item, now int64) bool {
	if c.latest.Load() <= now || !it.Enforced() || len(it.Name) == 0 {
		return false
	}
	// The key is only compared with: Peek does not keep it.
	r, ok := c.entries.Peek(unsafe.String(&it.Name[0], len(it.Name)))
	if !ok || r.until <= now || it.Cost < r.cost || r.params != it.Limit.Params {
		return false
	}
	it.Source = limit.SourceCache
	it.Verdict = limit.Verdict{
		Remaining: r.remaining, Wait: r.wait(it, now), Reset: millis(r.full - now), Window: r.window,
	}
	return true
}

// ending returns the entry of an item if it is to be renewed.
func (c *denyCache) ending(it *limit.Item, now int64) (refusal, bool) {
	r, ok := c.entries.Peek(unsafe.String(&it.Name[0], len(it.Name)))
	return r, ok && r.renewable && r.until-now < c.ttl/renewPart && it.Cost == r.cost
}

// renew reports whether an item that was refused should be asked for all the same,
// because its entry is about to end: one of those that come then is told so, and
// the others need not all ask at once when the entry has ended.
func (c *denyCache) renew(it *limit.Item, now int64) bool {
	r, ok := c.ending(it, now)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, ok := c.entries.Peek(string(it.Name)); !ok || known != r {
		return false
	}
	r.renewable = false
	c.entries.Add(string(it.Name), r)
	return true
}

// renewAll renews the entries that refused items of a request, and makes them
// undecided; or reports false where one of them refuses for longer.
func (c *denyCache) renewAll(items []limit.Item, now int64) bool {
	for i := range items {
		if it := &items[i]; it.Source == limit.SourceCache {
			if _, ok := c.ending(it, now); !ok {
				return false
			}
		}
	}
	for i := range items {
		if items[i].Source == limit.SourceCache {
			if !c.renew(&items[i], now) {
				return false // somebody else was first
			}
			items[i].Source, items[i].Verdict = limit.SourceNone, limit.Verdict{}
		}
	}
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
		if it.Source != limit.SourceStore || it.Allowed || it.Repeated || !it.Enforced() || len(it.Name) >= longName {
			continue
		}
		if it.Limit.Params.Algorithm == limit.AlgorithmConcurrency {
			continue // a slot may be given back at any moment
		}
		known, _ := c.entries.Peek(string(it.Name))
		if sent <= known.returned {
			continue
		}
		r := refusal{
			params: it.Limit.Params, cost: it.Cost, remaining: it.Remaining, window: it.Window, returned: known.returned,
			until: sent + c.ttl, due: limit.Never, full: received + it.Reset*1000, renewable: true,
		}
		if it.Wait != limit.Never {
			r.renewable = it.Wait*1000 > c.ttl
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
		if len(items[i].Name) < longName {
			c.entries.Add(string(items[i].Name), refusal{returned: now})
		}
	}
}

// forgetOne forgets the refusals of a bucket that is reset at now.
func (c *denyCache) forgetOne(name string, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(name) < longName {
		c.entries.Add(name, refusal{returned: now})
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
