package limiter

import (
	"bytes"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// longName is the length in bytes from which a bucket's name is not stored: such a bucket
// is neither leased nor are its denials cached. This bounds the leases and the cache in
// bytes.
const longName = 512

// DefaultDenyTTL is the default of Options.DenyTTL. It bounds how long the cache ignores
// units that another proxy returned.
const DefaultDenyTTL = time.Second

// renewPart is the last part of an entry's life, one in renewPart, in which a request may
// renew it. It must be longer than a decision takes. A renewal wastes the rest of the
// entry's life.
const renewPart = 50

// denyCache has the states of buckets at the time when the store denied a request. A
// request that such a state still denies, by the maths of package limit, needs no call.
// The cache never denies a request that the store would admit, except when units came
// back through another proxy. It never returns a wait that is too short, except when
// another proxy took units. Its size bounds it.
type denyCache struct {
	entries *lru.Cache[string, refusal]
	ttl     int64      // microseconds
	mu      sync.Mutex // orders the denials that are added and the units that come back
	// latest is when the last entry expires: from then on lookups return at once.
	latest atomic.Int64
	// forgotten is when the whole cache was dropped: answers to calls that were sent
	// before do not count.
	forgotten atomic.Int64
}

// refusal is the state of a bucket that denied a cost. Instants are microseconds of the
// monotonic clock, see Limiter.instant, except at.
type refusal struct {
	params bucket.Params // of the limit that denied: a changed limit may admit
	state  bucket.State
	at     int64 // the store's time of the state, between sent and received
	cost   int64
	sent   int64
	// received is when the reply arrived; until is when the entry expires.
	received, until int64
	// renewable reports that the bucket will still deny when the entry expires, so that
	// the store has to be called again, and that no request is doing so.
	renewable bool
	// returned is when units came back: denials by calls that were sent before are void.
	returned int64
}

// newDenyCache returns a cache of size denials, or nil for size 0.
func newDenyCache(size int, ttl time.Duration) *denyCache {
	if size <= 0 {
		return nil
	}
	entries, err := lru.New[string, refusal](size)
	if err != nil {
		panic(err) // only for a size that is not positive
	}
	return &denyCache{entries: entries, ttl: ttl.Microseconds()}
}

// lookup sets an enforced item's verdict if the cache has a denial for it at now, and
// reports whether it has.
func (c *denyCache) lookup(it *limit.Item, now int64) bool {
	if c.latest.Load() <= now || !it.Enforced() || len(it.Name) == 0 {
		return false
	}
	// Peek only compares the key and does not retain it.
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

// decide decides an item by the state. It reports whether the bucket denies the item at
// every time that the store's clock may show: the clock may be ahead of its earliest time
// by the duration of the call. The wait counts from the earliest time, so that it is
// never too short.
func (r *refusal) decide(it *limit.Item, now int64) (v bucket.Verdict, denied bool) {
	if r.params.Algorithm.ExpiresPerUnit() && it.Cost != r.cost {
		return v, false // the state of an expiring-units limit holds for one cost
	}
	state := r.state
	v, _, ok := bucket.Decide(&r.params, it.Bounds, &state, r.at+max(0, now-r.received), it.Cost)
	if !ok || v.Allowed {
		return v, false
	}
	return v, v.Wait == bucket.Never || (v.Wait-1)*1000 > r.received-r.sent
}

// ending returns the entry of an item if it is to be renewed.
func (c *denyCache) ending(it *limit.Item, now int64) (refusal, bool) {
	r, ok := c.entries.Peek(unsafe.String(&it.Name[0], len(it.Name)))
	return r, ok && r.renewable && r.until-now < c.ttl/renewPart && it.Cost >= r.cost
}

// refresh reports whether a request whose item the cache denies should call the store all
// the same, because the entry is about to expire. It returns true for one request only.
// Without that all requests would call the store at once when the entry has expired.
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

// refreshAll renews the entries that denied items of a request, and makes those items
// undecided. It returns false if one of the entries denies for longer.
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
				return false // another request was first
			}
			undecide(&items[i])
		}
	}
	return true
}

// update caches the denials among items, which were sent to the store at sent and answered
// by received. An admission changes the state for other costs: the entry of its bucket is
// dropped.
func (c *denyCache) update(items []limit.Item, sent, received int64) {
	for i := range items {
		it := &items[i]
		switch {
		case it.Source != limit.SourceStore || it.Replayed || len(it.Name) == 0 || len(it.Name) >= longName:
		case it.Allowed:
			c.drop(it, received)
		case !it.Enforced() || it.Limit.Params.Algorithm == bucket.AlgorithmConcurrency:
			// A slot may be returned at any time.
		default:
			c.keep(it, sent, received)
		}
	}
}

// drop deletes the entry of a bucket from which units were taken.
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

// keep caches a denial.
func (c *denyCache) keep(it *limit.Item, sent, received int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known, _ := c.entries.Peek(string(it.Name))
	if sent <= c.forgotten.Load() || sent <= known.returned {
		return
	}
	c.entries.Add(string(it.Name), refusal{
		params: it.Limit.Params, state: it.State, at: it.At, cost: it.Cost, sent: sent, received: received, until: sent + c.ttl,
		renewable: it.Wait == bucket.Never || it.Wait*1000 > c.ttl, returned: known.returned,
	})
	raise(&c.latest, sent+c.ttl)
}

// dropReturned deletes the entries of buckets to which units come back at now.
func (c *denyCache) dropReturned(items []limit.Item, now int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range items {
		if len(items[i].Name) < longName {
			c.entries.Add(string(items[i].Name), refusal{returned: now})
		}
	}
}

// forgetOne deletes the entry of a bucket that is reset at now.
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
