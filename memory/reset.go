package memory

import (
	"context"

	"github.com/limitgate/limitgate/limit"
)

// Locate returns "memory", for every bucket.
func (s *Store) Locate(*limit.Item) string { return "memory" }

// Reset deletes the buckets of a tenant, only those of the limit id unless that is empty;
// without a tenant those of the shared limit id. It returns how many there were. It
// visits every bucket: it is for operators, not for request traffic.
func (s *Store) Reset(_ context.Context, tenant, id string) (int64, error) {
	match, answers, n := limit.BucketsOf(tenant, id), limit.BucketsOf(tenant, ""), int64(0)
	if tenant == "" {
		answers = match
	}
	for i := range s.shards {
		sh := &s.shards[i]
		n += sh.removeIf(match)
		sh.mu.Lock()
		sh.answers.forgetIf(answers)
		if id == "" { // otherwise slots of other limits are still held
			sh.holds.forgetIf(answers)
		}
		sh.mu.Unlock()
	}
	return n, nil
}

// Forget deletes the bucket whose key is name, and reports whether it existed.
func (s *Store) Forget(_ context.Context, name string) (bool, error) {
	tag, hash := hashName(s.seed, []byte(name))
	sh := &s.shards[tag.shard()]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	i := sh.find(hash, []byte(name))
	if i == none {
		return false, nil
	}
	sh.remove(i)
	return true, nil
}

func (sh *shard) removeIf(match func(name string) bool) int64 {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	n := int64(0)
	for i := range sh.used {
		if name := sh.name(i); name != "" && match(name) {
			sh.remove(i)
			n++
		}
	}
	for name, u := range sh.units {
		if match(name) {
			sh.removeUnits(name, u)
			n++
		}
	}
	return n
}
