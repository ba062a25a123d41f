package memory

import (
	"hash/maphash"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// TakeFast does what Take does for one call of a tenant's items, without their names, and returns
// true. If one of the buckets does not exist, or if its limit has changed since it was stored,
// TakeFast has no effect and returns false. Now is in microseconds since the epoch.
func (s *Store) TakeFast(now int64, tenant string, items []limit.FastItem) bool {
	tag := tagHash(maphash.String(s.seed, tenant))
	sh := &s.shards[tag.shard()]
	sh.mu.Lock()
	now = limit.Monotonic(&sh.last, now)
	defer sh.mu.Unlock()
	if len(items) == 1 {
		return sh.takeOne(tag, tenant, &items[0], now)
	}
	return sh.takeSeveral(tag, tenant, items, now)
}

// takeOne decides a call of one item. The caller holds mu.
func (sh *shard) takeOne(tag tagHash, tenant string, it *limit.FastItem, now int64) bool {
	i := sh.findFast(tag.with(sh.seed, it.Rest), tenant, it.Rest)
	if i == none {
		return false
	}
	s := sh.slot(i)
	state := s.state
	var rewritten bool
	if it.Verdict, rewritten, _ = bucket.Decide(&it.Limit.Params, it.Bounds, &state, now, it.Cost); rewritten {
		return false
	}
	if it.Allowed {
		s.state = state
	}
	return true
}

// takeSeveral decides a call all or nothing. The caller holds mu.
func (sh *shard) takeSeveral(tag tagHash, tenant string, items []limit.FastItem, now int64) bool {
	if len(items) > len(sh.pending) {
		sh.pending = make([]pending, len(items))
	}
	granted := true
	for i := range items {
		it, p := &items[i], &sh.pending[i]
		if p.index = sh.findFast(tag.with(sh.seed, it.Rest), tenant, it.Rest); p.index == none {
			return false
		}
		p.state = sh.slot(p.index).state
		var rewritten bool
		if it.Verdict, rewritten, _ = bucket.Decide(&it.Limit.Params, it.Bounds, &p.state, now, it.Cost); rewritten {
			return false
		}
		granted = granted && it.Allowed
	}
	for i := range items {
		if p := &sh.pending[i]; granted {
			sh.slot(p.index).state = p.state
		}
	}
	return true
}

// findFast returns the slot of a tenant's bucket, or none. Rest is its name behind the tag.
func (sh *shard) findFast(hash uint64, tenant string, rest []byte) uint32 {
	at := sh.index.home(hash)
	for {
		var i uint32
		if i, at = sh.index.next(hash, at); i == none {
			return none
		}
		s := sh.slot(i)
		if s.nameLen == longName && limit.IsTenantBucket(sh.long[i], tenant, rest) ||
			s.nameLen != longName && limit.IsTenantBucket(s.name[:s.nameLen], tenant, rest) {
			return i
		}
	}
}
