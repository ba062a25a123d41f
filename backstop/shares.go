package backstop

import (
	"hash/maphash"
	"math"
	"sync"
	"unsafe"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// DefaultBuckets bounds the buckets. At some 300 bytes each, names included, this is
	// 30 MB.
	DefaultBuckets = 100_000
	// nameBytes is the budget for a name; longer names leave room for fewer buckets.
	nameBytes = 128
	// shardCount is how many locks the buckets are spread over.
	shardCount = 64
	// second is the time, in microseconds, whose units a new bucket starts with if it may
	// have been evicted before.
	second = 1_000_000
	// maxRates bounds the rates that have a missed of their own; further rates share one.
	maxRates = 64
)

// shares are this instance's shares of buckets, the most recently used ones. A new bucket
// is full. After the eviction of a bucket that is not full, new buckets cannot be
// distinguished from evicted ones. Until the evicted bucket would have been full, new
// buckets of its rate start with the units of a second, and all of them together with no
// more than one bucket earns, so that no client gains by the eviction of its buckets. The
// type is safe for concurrent use.
type shares struct {
	seed   maphash.Seed
	shards [shardCount]shareShard
}

type shareShard struct {
	mu        sync.Mutex // guards the fields below
	bound     int
	names     int // bytes
	buckets   *simplelru.LRU[string, *shareBucket]
	forgotten map[rate]*missed
	next      []pending // of the call being decided
	last      int64     // the latest time of a decision
}

// shareBucket is this instance's share of a bucket.
type shareBucket struct {
	state bucket.State
	// largest is the largest cost that was requested of it and that its limit can hold.
	// It counts until the instant by which that cost could have been saved up twice.
	largest, until int64
}

// missed is the instant until which evicted buckets of a rate may matter, and the units
// with which new ones may start, all together.
type missed struct {
	until int64
	state bucket.State
}

// rate identifies buckets that refill alike.
type rate struct{ count, period int64 }

// pending is the new state of a bucket after the call being decided.
type pending struct {
	shareBucket
	// from is the missed from which a new bucket draws start units, or nil if it starts
	// full.
	from  *missed
	start int64
}

// asTokenBucket are the parameters of package limit for all shares.
var asTokenBucket = bucket.Params{Algorithm: bucket.AlgorithmTokenBucket}

func (s *shares) init(bound int) {
	s.seed = maphash.MakeSeed()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.bound, sh.forgotten = max(1, bound/shardCount), map[rate]*missed{}
		sh.buckets, _ = simplelru.NewLRU[string, *shareBucket](sh.bound, nil) // fails only for a bound below 1
	}
}

// shard returns the shard of an item's bucket, which is that of all buckets with the same
// tag.
func (s *shares) shard(it *limit.Item) *shareShard {
	return &s.shards[maphash.Bytes(s.seed, it.Name[:it.TagLen])%shardCount]
}

// name returns the name of an item's bucket for lookups, without a copy.
func name(it *limit.Item) string { return unsafe.String(&it.Name[0], len(it.Name)) }

// decide fills in the verdicts of a call by the n-th part of its limits, and reports
// whether no enforced item denies. If take is set, it takes the units.
func (s *shares) decide(call []limit.Item, n, now int64, take bool) (admits bool) {
	sh := s.shard(&call[0])
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now = limit.Monotonic(&sh.last, now)
	admits = true
	sh.next = sh.next[:0]
	for i := range call {
		it := &call[i]
		if isSlot(it) { // decided already
			sh.next = append(sh.next, pending{})
			continue
		}
		next, p := sh.find(it, n, now)
		it.Verdict, _, _ = bucket.Decide(&p, nil, &next.state, now, it.Cost)
		sh.next = append(sh.next, next)
		admits = admits && (it.Allowed || !it.Enforced())
	}
	for i := 0; take && i < len(call); i++ {
		if isSlot(&call[i]) {
			continue
		}
		if call[i].Allowed && !admits {
			bucket.Undo(&asTokenBucket, &sh.next[i].state, call[i].Cost)
		}
		sh.keep(&call[i], &sh.next[i], now)
	}
	return admits
}

// find returns an item's bucket and the share of its limit. The capacity grows to the
// largest cost, so that a bucket can save up for large requests and small ones do not
// starve them. A new bucket never has more units than the share.
func (sh *shareShard) find(it *limit.Item, n, now int64) (pending, bucket.Params) {
	p := it.Limit.Params.Share(n)
	var next pending
	if b, ok := sh.buckets.Peek(name(it)); ok {
		next = pending{shareBucket: *b}
	} else {
		content := p.Capacity
		if next.from = sh.missed(&p, now); next.from != nil {
			next.start = next.from.offer(&p, now)
			content = next.start
		}
		next.state = p.StateWith(content, 0, now)
	}
	if now >= next.until {
		next.largest = 0
	}
	if it.Cost > max(p.Capacity, next.largest) && it.Cost <= it.Limit.Params.Capacity {
		next.largest, next.until = it.Cost, now+2*p.RefillTime(it.Cost)
	}
	p.Capacity = max(p.Capacity, min(next.largest, it.Limit.Params.Capacity))
	next.state = bucket.WithCapacity(next.state, p.Capacity, now)
	return next, p
}

// missed returns the missed of a share's rate, or nil if no bucket of it is missed.
func (sh *shareShard) missed(p *bucket.Params, now int64) *missed {
	for _, of := range []rate{{p.Count, p.Period}, {}} {
		if m := sh.forgotten[of]; m != nil && now < m.until {
			return m
		}
	}
	return nil
}

// offer returns how many units a new bucket may start with.
func (m *missed) offer(p *bucket.Params, now int64) int64 {
	if m.state.Touched() { // by buckets of the rate with another capacity
		m.state = bucket.WithCapacity(m.state, p.Capacity, now)
	}
	v, _, _ := bucket.Decide(p, nil, &m.state, now, 0)
	return min(earned(p, second), v.Remaining)
}

// earned returns the units that a bucket earns in micros microseconds: at least one and
// at most its capacity.
func earned(p *bucket.Params, micros int64) int64 {
	if p.Count > math.MaxInt64/micros {
		return p.Capacity
	}
	return min(p.Capacity, max(1, p.Count*micros/p.Period))
}

// keep stores the new state of a bucket. If another bucket of the call has evicted it,
// keep inserts it as a new one.
func (sh *shareShard) keep(it *limit.Item, next *pending, now int64) {
	if known, ok := sh.buckets.Get(name(it)); ok { // marks it as most recently used
		*known = next.shareBucket
		return
	}
	if next.from != nil {
		next.from.state = bucket.Refund(&asTokenBucket, next.from.state, -next.start, 0, now)
	}
	for sh.buckets.Len() > 0 && (sh.buckets.Len() >= sh.bound || sh.names+len(it.Name) > sh.bound*nameBytes) {
		name, oldest, _ := sh.buckets.RemoveOldest()
		sh.names -= len(name)
		sh.miss(&oldest.state, now)
	}
	sh.names += len(it.Name)
	own := next.shareBucket
	sh.buckets.Add(string(it.Name), &own)
}

// miss records that a bucket is missed until it would have been full.
func (sh *shareShard) miss(s *bucket.State, now int64) {
	until := bucket.Expires(bucket.AlgorithmTokenBucket, s)
	if until <= now {
		return
	}
	count, period := s.Rate()
	of := rate{count, period}
	if sh.forgotten[of] == nil && len(sh.forgotten) >= maxRates {
		for of, m := range sh.forgotten {
			if m.until <= now {
				delete(sh.forgotten, of)
			}
		}
		if len(sh.forgotten) >= maxRates {
			of = rate{}
		}
	}
	if sh.forgotten[of] == nil {
		sh.forgotten[of] = &missed{}
	}
	sh.forgotten[of].until = max(sh.forgotten[of].until, until)
}

// refund returns the units that an item took.
func (s *shares) refund(it *limit.Item) {
	sh := s.shard(it)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if b, ok := sh.buckets.Peek(name(it)); ok {
		b.state = bucket.Refund(&asTokenBucket, b.state, it.Cost, 0, 0)
	}
}

// forget deletes the bucket with a name, all of which is its tag.
func (s *shares) forget(name string) {
	sh := &s.shards[maphash.String(s.seed, name)%shardCount]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.buckets.Remove(name) {
		sh.names -= len(name)
	}
}

// reset deletes the buckets whose name matches, and returns how many there were.
func (s *shares) reset(match func(name string) bool) (n int64) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, name := range sh.buckets.Keys() {
			if match(name) && sh.buckets.Remove(name) {
				sh.names -= len(name)
				n++
			}
		}
		sh.mu.Unlock()
	}
	return n
}
