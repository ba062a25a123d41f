package cluster

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// hotChecks is how many checks of one bucket make it hot, in a tick, while its
	// master has more to do than it can. One that has not needs no help: parts cost
	// more than the bucket as a whole.
	hotChecks = 10_000
	// crowdedTime is how long a flight takes to a master that has more to do than it
	// can: many times what its own calls need.
	crowdedTime = 2 * time.Millisecond
	// hotGroup is how many checks of a bucket travel together when it is worth
	// counting them.
	hotGroup = 16
	// maxSplit bounds the split buckets that are known at a time, and the counted
	// ones: others are asked for as a whole.
	maxSplit = 1024
	// partsForMaster is over how many parts for each master a hot bucket is split, so
	// that most masters get some.
	partsForMaster = 2
	// coldTicks is how long a bucket that was hot may be cold before it is asked for
	// as a whole again.
	coldTicks = 10
)

// splits knows which buckets are split. Any number of goroutines may use it.
type splits struct {
	// parts is over how many a hot bucket is split; 0 for never.
	parts     atomic.Int64
	hotChecks int64
	// crowdedTime is the constant, but in tests.
	crowdedTime time.Duration
	hot         atomic.Int64 // buckets that are split because they are hot

	mu      sync.Mutex // guards the maps
	buckets map[string]*splitBucket
	counted map[string]*hotCount
}

// hotCount counts the checks of a bucket in a tick.
type hotCount struct {
	checks, cost int64 // the largest cost
}

// splitBucket is what is known of a split bucket and its parts.
type splitBucket struct {
	units int64 // that a part may hold
	auto  bool  // split because it is hot
	used  atomic.Int64
	cold  int // ticks, of one that is auto; belongs to tick
	parts []part
}

// part is what is known of a part.
type part struct {
	left    atomic.Int64 // units when it was asked last, or -1
	filling atomic.Bool  // somebody draws units for it
}

func newSplits() *splits {
	return &splits{hotChecks: hotChecks, crowdedTime: crowdedTime, buckets: map[string]*splitBucket{}, counted: map[string]*hotCount{}}
}

// of returns what is known of an item's bucket if it is split, or nil.
func (s *splits) of(it *limit.Item) *splitBucket {
	if it.Limit.Part == nil || it.Limit.Shards == 0 && s.hot.Load() == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buckets[string(it.Name)]
	if b == nil && it.Limit.Shards > 0 {
		b = s.open(it.Name, it.Limit, int64(it.Limit.Shards), it.Cost)
	}
	if b == nil || it.Cost > b.units {
		return nil
	}
	b.used.Add(1)
	return b
}

// open notes that a bucket is split, unless it must not be. It is called with mu
// held.
func (s *splits) open(name []byte, l *limit.Limit, parts, cost int64) *splitBucket {
	units := l.PartUnits(parts, cost)
	if units == 0 || len(s.buckets) >= maxSplit {
		return nil
	}
	b := &splitBucket{units: units, parts: make([]part, parts)}
	for i := range b.parts {
		b.parts[i].left.Store(-1)
	}
	s.buckets[string(name)] = b
	return b
}

// count counts checks of a bucket that travelled together to a master which has more
// to do than it can.
func (s *splits) count(items []limit.Item, checks int64) {
	if checks < hotGroup || s.parts.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range items {
		it := &items[i]
		if it.Limit.Part == nil || it.Limit.Shards > 0 {
			continue
		}
		c := s.counted[string(it.Name)]
		if c == nil {
			if len(s.counted) >= maxSplit {
				continue
			}
			c = new(hotCount)
			s.counted[string(it.Name)] = c
		}
		c.checks += checks
		c.cost = max(c.cost, it.Cost)
		if c.checks >= s.hotChecks && s.buckets[string(it.Name)] == nil {
			if b := s.open(it.Name, it.Limit, s.parts.Load(), c.cost); b != nil {
				b.auto = true
				s.hot.Add(1)
			}
		}
	}
}

// tick ends a tick: what was hot and is no more is a whole again, and what nobody
// asked for is forgotten. What lies in its parts is forgotten with them, when the
// bucket is full without it.
func (s *splits) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.counted)
	for name, b := range s.buckets {
		if used := b.used.Swap(0); b.auto && used >= s.hotChecks/2 || !b.auto && used > 0 {
			b.cold = 0
			continue
		}
		if b.cold++; b.cold >= coldTicks {
			delete(s.buckets, name)
			if b.auto {
				s.hot.Add(-1)
			}
		}
	}
}

// pick returns the part to ask for a cost: the first from a number on that may have
// it, or -1.
func (b *splitBucket) pick(cost int64, first int) int {
	for i := range b.parts {
		at := (first + i) % len(b.parts)
		if left := b.parts[at].left.Load(); left < 0 || left >= cost {
			return at
		}
	}
	return -1
}

// richest returns the part with the most units, but for one, or -1.
func (b *splitBucket) richest(not int) int {
	best, most := -1, int64(0)
	for i := range b.parts {
		if left := b.parts[i].left.Load(); i != not && left > most {
			best, most = i, left
		}
	}
	return best
}

// separate returns the calls without a split bucket, and the others.
func (s *Store) separate(items []limit.Item, calls []limit.Call) (whole, split []limit.Call) {
	for i, c := range calls {
		if s.splitItem(items[c.First:c.Last]) < 0 {
			continue
		}
		whole = slices.Clone(calls[:i])
		for _, c := range calls[i:] {
			if s.splitItem(items[c.First:c.Last]) < 0 {
				whole = append(whole, c)
			} else {
				split = append(split, c)
			}
		}
		return whole, split
	}
	return calls, nil
}

// splitItem returns which item of a call has a split bucket, or -1. Of several the
// first is decided by its parts.
func (s *Store) splitItem(call []limit.Item) int {
	for i := range call {
		if it := &call[i]; it.Limit.Shards > 0 && it.Limit.Part != nil || s.splits.hot.Load() > 0 && it.Limit.Part != nil && s.splits.known(it) {
			return i
		}
	}
	return -1
}

// any reports whether a bucket is known to be split.
func (s *splits) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.buckets) > 0
}

// split returns over how many parts a bucket is split, or 0.
func (s *splits) split(it *limit.Item) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[string(it.Name)]; b != nil {
		return len(b.parts)
	}
	return it.Limit.Shards
}

// known reports whether a bucket is split because it is hot.
func (s *splits) known(it *limit.Item) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buckets[string(it.Name)] != nil
}
