package memory

import (
	"sync"
	"sync/atomic"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// overflow holds one bucket per limit, for new buckets without room. Their number is that
// of the limits in all files ever loaded, plus inline limits up to maxOwn.
type overflow struct {
	mu      sync.Mutex // guards buckets and what they point to; taken after a shard's lock
	buckets map[overflowKey]*bucket.State
	// count counts the decisions that overflow buckets made.
	count atomic.Int64
}

type overflowKey struct {
	id, plan, tenant string
	algorithm        bucket.Algorithm
	own              bucket.Params // of a limit that a request carries
}

// maxOwn is the number of buckets from which on the limits that requests carry share one.
const maxOwn = 4096

// bucket returns the bucket of a limit. The caller holds mu.
func (o *overflow) bucket(l *limit.Limit) *bucket.State {
	o.count.Add(1)
	key := overflowKey{id: l.ID, plan: l.Plan, tenant: l.Tenant, algorithm: l.Params.Algorithm}
	if l.Ordinal < 0 && len(o.buckets) < maxOwn {
		key.own = l.Params
	}
	b := o.buckets[key]
	if b == nil {
		if o.buckets == nil {
			o.buckets = map[overflowKey]*bucket.State{}
		}
		b = &bucket.State{}
		o.buckets[key] = b
	}
	return b
}

// budget counts the buckets of a store against its bound.
type budget struct {
	bound int64
	live  atomic.Int64
}

// left returns how many more buckets there may be. Shards that add buckets at the same
// time may exceed the bound by one call each.
func (b *budget) left() int { return int(max(0, b.bound-b.live.Load())) }
