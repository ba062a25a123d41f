// Package admission measures how much of each tenant's limits was admitted, so that the
// admissions of several cells can be compared with the limit that they share. It
// promises exact counts of what one proxy admitted, in bounded memory.
package admission

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// Window is the length of a counting window: the windows of most limits fit into
	// it.
	Window = time.Minute
	// Most is how many buckets are reported for a window: those nearest to their limit.
	Most = 1000
	// shards is the number of locks that the buckets are spread over.
	shards = 64
	// maxBuckets bounds the buckets that are counted in a window; with their names they
	// take some 200 bytes each, 13 MB. Decisions about other buckets are counted
	// together, as missed.
	maxBuckets = 1 << 16
	// maxName bounds a name, in bytes.
	maxName = 512
)

// Counter counts the units that were admitted of each bucket of limits that count by
// tenant alone. Any number of goroutines may use it.
type Counter struct {
	seed   maphash.Seed
	shards [shards]shard
	counts atomic.Int64 // buckets in all shards
	missed atomic.Int64
}

type shard struct {
	mu      sync.Mutex // guards buckets
	buckets map[string]*bucket
}

// bucket counts what was admitted of one bucket.
type bucket struct {
	limit *limit.Limit // of the latest decision
	units int64
}

// New returns a counter without counts.
func New() *Counter {
	c := &Counter{seed: maphash.MakeSeed()}
	for i := range c.shards {
		c.shards[i].buckets = map[string]*bucket{}
	}
	return c
}

// Observe counts a decision.
func (c *Counter) Observe(d *limit.Decision, items []limit.Item) {
	if !d.Allowed {
		return
	}
	for i := range items {
		it := &items[i]
		if it.Limit.FixedField() && it.Enforced() && it.Limit.Undivided.Count > 0 && len(it.Name) <= maxName {
			c.add(it)
		}
	}
}

func (c *Counter) add(it *limit.Item) {
	sh := &c.shards[maphash.Bytes(c.seed, it.Name)%shards]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b := sh.buckets[string(it.Name)]
	if b == nil {
		if c.counts.Add(1) > maxBuckets {
			c.counts.Add(-1)
			c.missed.Add(1)
			return
		}
		b = &bucket{}
		sh.buckets[string(it.Name)] = b
	}
	b.limit = it.Limit
	b.units += it.Cost
}

// Rotate starts a new window and returns, for each bucket of the last one, the admitted
// units divided by what the limit of all cells together admits in a Window: 1 is the
// whole limit. It must be called once per Window, and returns the Most largest shares.
func (c *Counter) Rotate() map[string]float64 {
	all := map[string]float64{}
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		for name, b := range sh.buckets {
			all[name] = float64(b.units) / float64(b.limit.Undivided.Most(Window.Microseconds()))
		}
		c.counts.Add(-int64(len(sh.buckets)))
		sh.buckets = map[string]*bucket{}
		sh.mu.Unlock()
	}
	return TopN(all)
}

// Missed returns how many decisions were not counted since the start because maxBuckets
// was reached.
func (c *Counter) Missed() int64 { return c.missed.Load() }

// TopN returns the Most largest shares.
func TopN(all map[string]float64) map[string]float64 {
	if len(all) <= Most {
		return all
	}
	names := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return cmp.Or(cmp.Compare(all[b], all[a]), cmp.Compare(a, b)) })
	some := make(map[string]float64, Most)
	for _, name := range names[:Most] {
		some[name] = all[name]
	}
	return some
}
