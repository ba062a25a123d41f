package cluster

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/breaker"
	"github.com/limitgate/limitgate/limit"
)

// A master that comes back empty has forgotten every bucket, which nothing else
// tells. So each one has a mark, that the proxies prolong: where it is gone, although
// this proxy has seen it, the master was reset. Whichever proxy looks first counts it.

const (
	// markPrefix is what the keys of marks begin with.
	markPrefix = "lg:mark:"
	// markTTL is how long a mark stays after the last proxy has gone.
	markTTL = 24 * time.Hour
	// maxMark bounds the search for keys: a master with one slot of 16,384 owns one of
	// so many but once in a thousand.
	maxMark = 7 * limit.Slots
)

// lookForResets looks for the marks of all masters, puts them there, and counts
// those that were lost. Only Run calls it.
func (s *Store) lookForResets(ctx context.Context) {
	top := s.top.Load()
	found := map[*node]bool{}
	for number := 0; len(found) < len(top.nodes)-len(top.met) && number < maxMark; number++ {
		key := markPrefix + strconv.Itoa(number)
		n := top.owner(limit.Slot([]byte(key)))
		if n == nil || found[n] {
			continue
		}
		found[n] = true
		if n.breaker.State() == breaker.Closed {
			s.mark(ctx, n, key)
		}
	}
}

// mark prolongs the mark of a master. The same slots have the same key, whichever
// node serves them.
func (s *Store) mark(ctx context.Context, n *node, key string) {
	err := n.client.SetArgs(ctx, key, "1", redis.SetArgs{Get: true, TTL: markTTL}).Err()
	lost := errors.Is(err, redis.Nil)
	if err != nil && !lost {
		return
	}
	if lost && s.marks[key] {
		s.counts.resets.Add(1)
		s.opts.Log.Error("a master of the store has lost its data: its buckets are full again", "node", n.addr)
	}
	s.marks[key] = true
}
