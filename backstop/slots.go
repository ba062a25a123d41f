package backstop

import (
	"cmp"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/limitgate/limitgate/limit"
)

const (
	// maxSlotBuckets bounds the buckets of concurrency that are known; those asked for
	// least recently are forgotten, and whoever holds slots of them counts no more.
	maxSlotBuckets = 10_000
	// maxHolders bounds the holders whose buckets are known, some 20 MB: a slot of one
	// that is forgotten is held until its time is up.
	maxHolders = 100_000
)

// slots are those of limits of concurrency that this instance gave while the store was
// sick, an n-th of each limit. They live and end here: the store does not know them.
type slots struct {
	mu      sync.Mutex // guards what follows; taken before that of a shard of shares
	buckets *simplelru.LRU[string, *limit.Units]
	holders *simplelru.LRU[string, []string] // the buckets in which a call holds a slot, by limit.Call.Once
	last    int64                            // the latest time of a decision
}

func (s *slots) init() {
	s.buckets, _ = simplelru.NewLRU[string, *limit.Units](maxSlotBuckets, nil) // fail for bounds below 1 only
	s.holders, _ = simplelru.NewLRU[string, []string](maxHolders, nil)
}

// counts reports whether a call is of limits of concurrency, too.
func counts(call []limit.Item) bool {
	for i := range call {
		if isSlot(&call[i]) {
			return true
		}
	}
	return false
}

func isSlot(it *limit.Item) bool { return it.Limit.Params.Algorithm == limit.AlgorithmConcurrency }

// share returns the n-th part of a limit of concurrency.
func share(it *limit.Item, n int64) limit.Params {
	p := it.Limit.Params
	p.Capacity = max(1, p.Capacity/n)
	return p
}

// look fills in the verdicts of those items of a call that are slots, and reports
// whether no enforced one denies. The caller holds mu.
func (s *slots) look(items []limit.Item, c limit.Call, n, now int64) (admits bool) {
	admits = true
	for i := range items {
		it := &items[i]
		if !isSlot(it) {
			continue
		}
		units, ok := s.buckets.Get(string(it.Name))
		if !ok {
			units = &limit.Units{}
		}
		p := share(it, n)
		state, _ := units.State(&p, now, it.Cost, c.Keep.Microseconds())
		it.Verdict, _, _ = limit.Decide(&p, nil, &state, now, it.Cost)
		if !it.Allowed && units.Holds(now, string(limit.Holder(c.Once))) { // it asks again
			it.Verdict = limit.Verdict{Allowed: true, Remaining: it.Remaining, Reset: it.Reset}
		}
		admits = admits && (it.Allowed || !it.Enforced())
	}
	return admits
}

// take takes the slots that look found. The caller holds mu.
func (s *slots) take(items []limit.Item, c limit.Call, n, now int64) {
	var names []string
	for i := range items {
		it := &items[i]
		if !isSlot(it) || !it.Allowed {
			continue
		}
		name := string(it.Name)
		units, ok := s.buckets.Get(name)
		if !ok {
			units = &limit.Units{}
			s.buckets.Add(name, units)
		}
		p := share(it, n)
		state, _ := units.State(&p, now, it.Cost, c.Keep.Microseconds())
		units.Take(&p, now, it.Cost, &state, string(limit.Holder(c.Once)))
		names = append(names, name)
	}
	if len(names) > 0 {
		s.holders.Add(string(c.Once), names)
	}
}

// settle gives the slots of a call back, or holds them from now on, and reports whether
// there were any.
func (s *slots) settle(what *limit.Settlement, now int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := what.Key()
	if what.Change != limit.ChangeRenew {
		return s.give(key)
	}
	now = limit.Monotonic(&s.last, now)
	ends := now + cmp.Or(what.For, limit.DefaultHold).Microseconds()
	names, _ := s.holders.Get(string(key))
	held := false
	for _, name := range names {
		if units, ok := s.buckets.Get(name); ok {
			held = units.Renew(now, ends, string(limit.Holder(key))) || held
		}
	}
	return held
}

// release gives the slots back that a call holds under a key.
func (s *slots) release(key []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.give(key)
}

// give gives the slots back that a call holds under a key, and reports whether there
// were any. The caller holds mu.
func (s *slots) give(key []byte) (held bool) {
	names, _ := s.holders.Get(string(key))
	for _, name := range names {
		if units, ok := s.buckets.Get(name); ok {
			held = units.Give(1, 0, string(limit.Holder(key))) > 0 || held
		}
	}
	s.holders.Remove(string(key))
	return held
}

// reset forgets the buckets whose name matches, and returns how many there were.
func (s *slots) reset(match func(name string) bool) (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range s.buckets.Keys() {
		if match(name) && s.buckets.Remove(name) {
			n++
		}
	}
	return n
}
