package cluster

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/limit"
)

// A master that comes back empty has lost every bucket, and no reply shows that. So each
// master has a mark, a key that the proxies prolong: if it is missing although this proxy
// has seen it, the master was reset. The first proxy to find it missing counts the reset.
// The value of the mark is the number of proxies, for proxies that start while the
// heartbeats cannot be read.

const (
	// markPrefix is the prefix of the keys of marks.
	markPrefix = "lg:mark:"
	// markTTL is the expiry of a mark after the last proxy has stopped.
	markTTL = 24 * time.Hour
	// markPatience is for how many reload intervals a proxy that has never seen a mark leaves
	// it to others: they look once in an interval, and once more as their breakers may close
	// an interval later.
	markPatience = 3
	// maxMark bounds the search for keys: a master with one slot of 16,384 owns one of that
	// many keys, except in one case of a thousand.
	maxMark = 7 * limit.NumHashSlots
)

// mark is what this proxy knows of the mark of a master.
type mark struct {
	seen    bool      // it was there
	missing time.Time // since when it was not, unless it was seen; or zero
}

// checkDataLoss reads and prolongs the marks of all masters concurrently, and counts those
// that were lost. Only Run calls it, first when it begins.
func (s *Store) checkDataLoss(ctx context.Context, first bool) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.IOTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for n, key := range s.top.Load().keysOf(markPrefix, "") {
		if n.breaker.State() == breaker.Closed {
			if s.marks[key] == nil {
				s.marks[key] = &mark{}
			}
			m := s.marks[key]
			wg.Go(func() { s.checkMark(ctx, n, key, m, first) })
		}
	}
	wg.Wait()
}

// checkMark prolongs the mark of one master, and creates it if it is missing. A proxy that
// has never seen it first leaves it to those that have: only they can distinguish a master
// that came back empty from a new one. A master that answers when the proxy starts did not
// just come back.
func (s *Store) checkMark(ctx context.Context, n *node, key string, m *mark, first bool) {
	instances := s.instances.Load()
	there, err := n.prolongMark(ctx, key, instances)
	if RefusesWrites(err) != "" { // a proxy without requests notices it nowhere else
		n.reportHealth(err)
	}
	switch {
	case err != nil:
		m.missing = time.Time{} // it may be away and come back empty
		return
	case there:
		m.seen = true
		return
	case first: // created below
	case !m.seen && m.missing.IsZero():
		m.missing = time.Now()
		return
	case !m.seen && time.Since(m.missing) < markPatience*s.opts.ReloadInterval:
		return
	}
	created, err := n.client.SetNX(ctx, key, instances, markTTL).Result()
	if err != nil {
		return
	}
	if created && m.seen { // if another proxy created it first, that proxy counts the reset
		s.counts.resets.Add(1)
		s.opts.Log.Error("master of the store lost its data, its buckets are full again", "node", n.addr, "advice", "appendonly yes keeps them over a restart, a replica over one of its master alone, and maxmemory-policy noeviction where memory runs out")
	}
	m.seen = true
}

// keysOf returns the key of each master with a prefix and a suffix, such as that of its mark. The same slots have the same key,
// whichever node serves them.
func (t *topology) keysOf(prefix, suffix string) map[*node]string {
	keys := map[*node]string{}
	for number := 0; len(keys) < len(t.nodes)-len(t.discovered) && number < maxMark; number++ {
		key := prefix + strconv.Itoa(number) + suffix
		if n := t.owner(limit.HashSlot([]byte(key))); n != nil && keys[n] == "" {
			keys[n] = key
		}
	}
	return keys
}

// prolongMark prolongs the mark of a master, and reports whether it exists. Its value becomes
// the number of instances, unless that is not known.
func (n *node) prolongMark(ctx context.Context, key string, instances int64) (there bool, err error) {
	if instances > 0 {
		err = n.client.SetArgs(ctx, key, instances, redis.SetArgs{Mode: "XX", Get: true, TTL: markTTL}).Err()
	} else {
		err = n.client.GetEx(ctx, key, markTTL).Err()
	}
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

// rememberedInstances returns the largest number of instances in the marks that can be
// read, or 0.
func (s *Store) rememberedInstances(ctx context.Context) (most int) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.IOTimeout)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex // guards most
	for n, key := range s.top.Load().keysOf(markPrefix, "") {
		wg.Go(func() {
			was, err := n.client.Get(ctx, key).Int()
			mu.Lock()
			defer mu.Unlock()
			if err == nil && was <= maxInstances {
				most = max(most, was)
			}
		})
	}
	wg.Wait()
	return most
}
