package memory

import (
	"sync"
	"sync/atomic"

	"github.com/limitgate/limitgate/limit"
)

// overflow holds one bucket per limit for the new buckets that find no room.
// Their number is that of the limits in the files ever loaded.
type overflow struct {
	mu      sync.Mutex // guards buckets
	buckets map[overflowKey]*overflowBucket
	// count counts the decisions that overflow buckets made.
	count atomic.Int64
}

type overflowKey struct{ id, plan, tenant string }

type overflowBucket struct {
	mu    sync.Mutex // guards state; taken after a shard's lock
	state limit.State
}

// lock returns the locked bucket of a limit.
func (o *overflow) lock(l *limit.Limit) *overflowBucket {
	o.count.Add(1)
	key := overflowKey{l.ID, l.Plan, l.Tenant}
	o.mu.Lock()
	b := o.buckets[key]
	if b == nil {
		if o.buckets == nil {
			o.buckets = map[overflowKey]*overflowBucket{}
		}
		b = &overflowBucket{}
		o.buckets[key] = b
	}
	o.mu.Unlock()
	b.mu.Lock()
	return b
}
