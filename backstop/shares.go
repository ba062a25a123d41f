package backstop

import (
	"hash/maphash"
	"math"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/limitgate/limitgate/limit"
)

const (
	// DefaultBuckets bounds the buckets that are kept while the store is sick. At
	// some 300 bytes each this is 30 MB.
	DefaultBuckets = 100_000
	// shardCount is how many locks they are spread over.
	shardCount = 64
	// second is what a bucket starts with when another one has to be forgotten for
	// it, in microseconds of its rate.
	second = 1_000_000
)

// asTokenBucket tells the maths what every share is.
var asTokenBucket = limit.Params{Algorithm: limit.AlgorithmTokenBucket}

// shares are this instance's shares of buckets, those that were asked for last.
// A new bucket is full. When a bucket has to be forgotten that is not full, then
// nobody knows who is new and who was forgotten: new ones start with what they earn
// in a second. Any number of goroutines may use it.
type shares struct {
	seed   maphash.Seed
	shards [shardCount]shareShard
}

type shareShard struct {
	mu      sync.Mutex // guards the rest
	bound   int
	buckets *simplelru.LRU[string, limit.State]
	next    []limit.State // of the call being decided
	last    int64         // the latest time of a decision
}

func (s *shares) init(bound int) {
	s.seed = maphash.MakeSeed()
	for i := range s.shards {
		sh := &s.shards[i]
		sh.bound = max(1, bound/shardCount)
		sh.buckets, _ = simplelru.NewLRU[string, limit.State](sh.bound, nil) // fails for a bound below 1 only
	}
}

// shard returns the shard of all buckets that are decided together with it.
func (s *shares) shard(it *limit.Item) *shareShard {
	return &s.shards[maphash.Bytes(s.seed, it.Name[:it.TagLen])%shardCount]
}

// decide fills in the verdicts of a call by the n-th part of its limits, and
// reports whether no enforced item denies. Then, if take is set, it takes the
// units.
func (s *shares) decide(call []limit.Item, n, now int64, take bool) (admits bool) {
	sh := s.shard(&call[0])
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now = sh.monotonic(now)
	admits = true
	sh.next = sh.next[:0]
	for i := range call {
		it := &call[i]
		state, p := sh.find(it, n, now)
		it.Verdict, _, _ = limit.Decide(&p, nil, &state, now, it.Cost)
		sh.next = append(sh.next, state)
		admits = admits && (it.Allowed || !it.Enforced())
	}
	if !take {
		return admits
	}
	for i := range call {
		if call[i].Allowed && !admits {
			limit.Untake(&asTokenBucket, &sh.next[i], call[i].Cost)
		}
		sh.buckets.Add(string(call[i].Name), sh.next[i])
	}
	return admits
}

// clockSlack is how far, in microseconds, decisions may be out of order: their time
// is taken before the lock. What lies further back is a clock that was set back.
const clockSlack = 1_000_000

// monotonic returns the time at which a decision of now is made.
func (sh *shareShard) monotonic(now int64) int64 {
	if behind := sh.last - now; behind <= 0 || behind >= clockSlack {
		sh.last = now
	}
	return sh.last
}

// find returns the state of an item's bucket, and the share of its limit. The
// bucket holds the largest cost that it was asked for and that the limit can hold,
// so that large requests are not starved by small ones.
func (sh *shareShard) find(it *limit.Item, n, now int64) (limit.State, limit.Params) {
	state, known := sh.buckets.Peek(string(it.Name))
	p := it.Limit.Params.Share(n, 1)
	p.Capacity = max(p.Capacity, state.CapacityAt(&p))
	if it.Cost <= it.Limit.Params.Capacity {
		p.Capacity = max(p.Capacity, it.Cost)
	}
	if !known && sh.crowded(now) {
		state = p.StateWith(earned(&p, second), 0, now)
	}
	return state, p
}

// crowded reports whether a bucket must be forgotten for a new one that is not
// full. A full one is forgotten here.
func (sh *shareShard) crowded(now int64) bool {
	if sh.buckets.Len() < sh.bound {
		return false
	}
	_, oldest, _ := sh.buckets.GetOldest()
	if limit.Expires(limit.AlgorithmTokenBucket, &oldest) > now {
		return true
	}
	sh.buckets.RemoveOldest()
	return false
}

// earned returns what a bucket earns in so many microseconds: at least a unit and
// at most all that it holds.
func earned(p *limit.Params, micros int64) int64 {
	if p.Count > math.MaxInt64/micros {
		return p.Capacity
	}
	return min(p.Capacity, max(1, p.Count*micros/p.Period))
}

// refund gives back what an item took.
func (s *shares) refund(it *limit.Item) {
	sh := s.shard(it)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if state, ok := sh.buckets.Peek(string(it.Name)); ok {
		sh.buckets.Add(string(it.Name), limit.Refund(&asTokenBucket, state, it.Cost, 0))
	}
}

// reset forgets the buckets whose name matches, and returns how many there were.
func (s *shares) reset(match func(name string) bool) (n int64) {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		for _, name := range sh.buckets.Keys() {
			if match(name) && sh.buckets.Remove(name) {
				n++
			}
		}
		sh.mu.Unlock()
	}
	return n
}
