package backstop

import (
	"slices"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// maxSlotBuckets bounds the buckets of concurrency; the least recently used ones are
	// evicted, see concurrency.missed.
	maxSlotBuckets = 10_000
	// maxHolderBytes bounds the memory of holders. The oldest ones are evicted first, and
	// their slots become free.
	maxHolderBytes = 20 << 20
	// holderBytes is about the size of a holder without its key and the names of its
	// buckets, each of which is stored twice.
	holderBytes = 300
)

// concurrency holds the slots that this instance granted while the store was unavailable,
// an n-th of each limit. They exist only in this process: the store has no record of
// them.
type concurrency struct {
	mu      sync.Mutex // guards the fields below; locked before the mu of a shareShard
	buckets *simplelru.LRU[string, *slotBucket]
	holders *simplelru.LRU[string, holder] // by limit.Call.RecordKey
	bytes   int                            // of holders
	last    int64                          // the latest time of a decision
	// missed is the instant until which a slot of an evicted bucket may be held: buckets
	// that are not stored have one slot until then.
	missed int64
}

// slotBucket is the slots held of one bucket.
type slotBucket struct {
	bucket.UnitLog
	params bucket.Params // of the limit that used it last
	small  bool          // it was created while an evicted bucket may have had held slots
}

// holder is a call that holds slots.
type holder struct {
	names []string // of the buckets
	keep  int64    // for how long, in microseconds
	bytes int
}

func (s *concurrency) init() {
	// NewLRU fails only for sizes below 1.
	s.buckets, _ = simplelru.NewLRU(maxSlotBuckets, func(_ string, b *slotBucket) { s.missed = max(s.missed, b.Expires(&b.params)) })
	s.holders, _ = simplelru.NewLRU[string, holder](maxHolderBytes/holderBytes, nil)
}

// hasSlots reports whether a call includes limits of concurrency.
func hasSlots(call []limit.Item) bool {
	for i := range call {
		if isSlot(&call[i]) {
			return true
		}
	}
	return false
}

func isSlot(it *limit.Item) bool { return it.Limit.Params.Algorithm == bucket.AlgorithmConcurrency }

// bucket returns the slots of an item's bucket, and the n-th part of its limit. The
// caller holds mu.
func (s *concurrency) bucket(it *limit.Item, n, now int64) (*slotBucket, bucket.Params) {
	p := it.Limit.Params
	p.Capacity = max(1, p.Capacity/n)
	b, ok := s.buckets.Get(string(it.Name))
	if !ok {
		b = &slotBucket{small: now < s.missed}
	}
	if b.small {
		p.Capacity = 1
	}
	b.params = p
	return b, p
}

// check fills in the verdicts of those items of a call that are slots, and reports
// whether no enforced one denies. The caller holds mu.
func (s *concurrency) check(items []limit.Item, c limit.Call, n, now int64) (admits bool) {
	admits = true
	for i := range items {
		it := &items[i]
		if !isSlot(it) {
			continue
		}
		b, p := s.bucket(it, n, now)
		state, _ := b.State(&p, now, it.Cost, c.RecordTTL.Microseconds())
		it.Verdict, _, _ = bucket.Decide(&p, nil, &state, now, it.Cost)
		if !it.Allowed && b.Holds(now, string(limit.Holder(c.RecordKey))) { // its own repeated request
			it.Verdict = bucket.Verdict{Allowed: true, Remaining: it.Remaining, Reset: it.Reset}
		}
		admits = admits && (it.Allowed || !it.Enforced())
	}
	return admits
}

// take takes the slots that check admitted. The caller holds mu.
func (s *concurrency) take(items []limit.Item, c limit.Call, n, now int64) {
	h := holder{keep: c.RecordTTL.Microseconds(), bytes: len(c.RecordKey) + holderBytes}
	by := string(limit.Holder(c.RecordKey))
	for i := range items {
		it := &items[i]
		if !isSlot(it) || !it.Allowed {
			continue
		}
		b, p := s.bucket(it, n, now)
		state, _ := b.State(&p, now, it.Cost, h.keep)
		b.Take(&p, now, it.Cost, &state, by)
		s.buckets.Add(string(it.Name), b)
		h.names = append(h.names, string(it.Name))
		h.bytes += 2 * len(it.Name)
	}
	if len(h.names) == 0 {
		return
	}
	s.forget(string(c.RecordKey))
	for s.bytes+h.bytes > maxHolderBytes {
		oldest, _, _ := s.holders.GetOldest()
		s.give(oldest)
	}
	s.holders.Add(string(c.RecordKey), h)
	s.bytes += h.bytes
}

// settle releases the slots of a call, or extends them from now on, and reports whether
// there were any.
func (s *concurrency) settle(what *limit.Settlement, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := string(what.Key())
	if what.Change != limit.ChangeRenew {
		return s.give(key)
	}
	now = limit.Monotonic(&s.last, now)
	h, _ := s.holders.Get(key)
	if what.For > 0 {
		h.keep = what.For.Microseconds()
	}
	held := false
	for _, name := range h.names {
		if b, ok := s.buckets.Get(name); ok {
			held = b.Renew(now, now+h.keep, string(limit.Holder([]byte(key)))) || held
		}
	}
	if held {
		s.holders.Add(key, h)
	}
	return held
}

// holds reports whether a call holds a slot under a record key.
func (s *concurrency) holds(key []byte, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now = limit.Monotonic(&s.last, now)
	h, _ := s.holders.Peek(string(key))
	return slices.ContainsFunc(h.names, func(name string) bool {
		b, ok := s.buckets.Peek(name)
		return ok && b.Holds(now, string(limit.Holder(key)))
	})
}

// release releases the slots that a call holds under a record key.
func (s *concurrency) release(key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give(string(key))
}

// give releases the slots that a call holds under a record key, and reports whether there
// were any. The caller holds mu.
func (s *concurrency) give(key string) (held bool) {
	h, _ := s.holders.Peek(key)
	for _, name := range h.names {
		if b, ok := s.buckets.Peek(name); ok {
			held = b.Release(0, 1, 0, string(limit.Holder([]byte(key)))) > 0 || held
		}
	}
	s.forget(key)
	return held
}

// forget deletes a holder. The caller holds mu.
func (s *concurrency) forget(key string) {
	if h, ok := s.holders.Peek(key); ok {
		s.bytes -= h.bytes
		s.holders.Remove(key)
	}
}

// reset deletes the buckets whose name matches, and returns how many there were.
func (s *concurrency) reset(match func(name string) bool) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	missed := s.missed
	defer func() { s.missed = missed }() // a reset bucket does not count as missed
	for _, name := range s.buckets.Keys() {
		if match(name) && s.buckets.Remove(name) {
			n++
		}
	}
	return n
}
