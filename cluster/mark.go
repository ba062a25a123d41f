package cluster

import (
	"context"
	"errors"
	"strconv"
	"sync"
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

// lookForResets looks for the marks of all masters at the same time, puts them there,
// and counts those that were lost. Only Run calls it.
func (s *Store) lookForResets(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.IOTimeout)
	defer cancel()
	var wg sync.WaitGroup
	var mu sync.Mutex // guards s.marks
	for n, key := range s.top.Load().markKeys() {
		if n.breaker.State() == breaker.Closed {
			wg.Go(func() {
				there, err := n.mark(ctx, key)
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if !there && s.marks[key] {
					s.counts.resets.Add(1)
					s.opts.Log.Error("a master of the store has lost its data: its buckets are full again", "node", n.addr)
				}
				s.marks[key] = true
			})
		}
	}
	wg.Wait()
}

// markKeys returns the key of each master's mark. The same slots have the same key,
// whichever node serves them.
func (t *topology) markKeys() map[*node]string {
	keys := map[*node]string{}
	for number := 0; len(keys) < len(t.nodes)-len(t.met) && number < maxMark; number++ {
		key := markPrefix + strconv.Itoa(number)
		if n := t.owner(limit.Slot([]byte(key))); n != nil && keys[n] == "" {
			keys[n] = key
		}
	}
	return keys
}

// mark prolongs the mark of a master, or puts it there, and reports whether it was
// there.
func (n *node) mark(ctx context.Context, key string) (there bool, err error) {
	err = n.client.SetArgs(ctx, key, "1", redis.SetArgs{Get: true, TTL: markTTL}).Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}
