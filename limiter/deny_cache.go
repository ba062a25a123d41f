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

// denyCache keeps what buckets were when the store refused something: what they refuse
// still, by the maths of package limit, needs no call. It never denies what the store
// would admit, but for units that came back through another proxy, and never returns a
// wait that is too short, but for units that another proxy took. It is bounded by its size.
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

// refusal is the state of a bucket that denied a cost. Instants are microseconds by
// this machine's clock, but for at.
type refusal struct {
	params limit.Params // of the limit that refused: another one may admit
	state  limit.State
	at     int64 // the store's time of the state, which lay between sent and received
	cost   int64
	sent   int64
	// received is when the reply was there, and until when the entry ends.
	received, until int64
	// renewable says that the bucket will still refuse when the entry ends, so that
	// the store has to be asked again, and that no request does yet.
	renewable bool
	// returned is when units came back: refusals that were asked for before are void.
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

// lookup gives an enforced item its verdict if it is known to be denied at now,
// and reports whether it is.
func (c *denyCache) lookup(it *limit.Item, now int64) bool {
	if c.latest.Load() <= now || !it.Enforced() || len(it.Name) == 0 {
		return false
	}
	// The key is only compared with: Peek does not keep it.
	r, ok := c.entries.Peek(unsafe.String(&it.Name[0], len(it.Name)))
	if !ok || r.until <= now || r.params != it.Limit.Params {
		return false
	}
	v, denied := r.decide(it, now)
	if denied {
		it.Source, it.Verdict = limit.SourceCache, v
	}
	return denied
}

// decide decides an item by the state, and reports whether the bucket denies it whatever
// the store's clock says: that may be ahead of its earliest time by as long as the reply
// was under way. The wait counts from the earliest time, so that it is never too short.
func (r *refusal) decide(it *limit.Item, now int64) (v limit.Verdict, denied bool) {
	if r.params.Algorithm.ExpiresPerUnit() && it.Cost != r.cost {
		return v, false // the state is one for a cost
	}
	state := r.state
	v, _, ok := limit.Decide(&r.params, it.Bounds, &state, r.at+max(0, now-r.received), it.Cost)
	if !ok || v.Allowed {
		return v, false
	}
	return v, v.Wait == limit.Never || (v.Wait-1)*1000 > r.received-r.sent
}

// ending returns the entry of an item if it is to be renewed.
func (c *denyCache) ending(it *limit.Item, now int64) (refusal, bool) {
	r, ok := c.entries.Peek(unsafe.String(&it.Name[0], len(it.Name)))
	return r, ok && r.renewable && r.until-now < c.ttl/renewPart && it.Cost >= r.cost
}

// refresh reports whether an item that was refused should be asked for all the same,
// because its entry is about to end: one of those that come then is told so, and
// the others need not all ask at once when the entry has ended.
func (c *denyCache) refresh(it *limit.Item, now int64) bool {
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

// refreshAll renews the entries that refused items of a request, and makes them
// undecided; or reports false where one of them refuses for longer.
func (c *denyCache) refreshAll(items []limit.Item, now int64) bool {
	for i := range items {
		if it := &items[i]; it.Source == limit.SourceCache {
			if _, ok := c.ending(it, now); !ok {
				return false
			}
		}
	}
	for i := range items {
		if items[i].Source == limit.SourceCache {
			if !c.refresh(&items[i], now) {
				return false // somebody else was first
			}
			undecide(&items[i])
		}
	}
	return true
}

// learn keeps the refusals among items, which the store was asked for at sent
// and answered by received. What it admitted changes what is known of other costs: that
// is dropped.
func (c *denyCache) learn(items []limit.Item, sent, received int64) {
	for i := range items {
		it := &items[i]
		switch {
		case it.Source != limit.SourceStore || it.Replayed || len(it.Name) == 0 || len(it.Name) >= longName:
		case it.Allowed:
			c.drop(it, received)
		case !it.Enforced() || it.Limit.Params.Algorithm == limit.AlgorithmConcurrency:
			// A slot may be given back at any moment.
		default:
			c.keep(it, sent, received)
		}
	}
}

// drop forgets what is known of a bucket that units were taken from.
func (c *denyCache) drop(it *limit.Item, now int64) {
	if c.latest.Load() <= now {
		return
	}
	if r, ok := c.entries.Peek(unsafe.String(&it.Name[0], len(it.Name))); !ok || r.until <= now {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.entries.Peek(string(it.Name)); ok && r.until > 0 {
		c.entries.Add(string(it.Name), refusal{returned: max(r.returned, now)})
	}
}

// keep keeps a refusal.
func (c *denyCache) keep(it *limit.Item, sent, received int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, _ := c.entries.Peek(string(it.Name))
	if sent <= c.forgotten.Load() || sent <= known.returned {
		return
	}
	c.entries.Add(string(it.Name), refusal{
		params: it.Limit.Params, state: it.State, at: it.At, cost: it.Cost, sent: sent, received: received, until: sent + c.ttl,
		renewable: it.Wait == limit.Never || it.Wait*1000 > c.ttl, returned: known.returned,
	})
	raise(&c.latest, sent+c.ttl)
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
