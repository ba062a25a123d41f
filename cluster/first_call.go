package cluster

import (
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// A user may be allowed to read the topology, and not to run the script or to write its keys. Calls alone show that, so Open makes
// one at each master before the first of a client.

// forbidden makes a call on a bucket of its own at each master of a topology that is connected, and returns the errors if all that
// answer forbid it. A store that forbids calls at some masters decides those of the others.
func (s *Store) forbidden(ctx context.Context, t *topology, connected map[*node]error) error {
	var mu sync.Mutex // guards all and decided
	var all topologyErrors
	decided := false
	var wg sync.WaitGroup
	for n, key := range t.keysOf(probePrefix + rand.Text() + ":") { // a bucket that exists is written by another command
		wg.Go(func() {
			err := connected[n]
			if err == nil {
				err = s.callOnce(ctx, t, n, key)
			}
			mu.Lock()
			defer mu.Unlock()
			if Forbidden(err) {
				all = append(all, topologyError{n.addr, err})
			}
			decided = decided || err == nil
		})
	}
	wg.Wait()
	if decided || len(all) == 0 {
		return nil
	}
	return all
}

// callOnce makes a call on the bucket of a key, by a connection of its own: those of the pipelines are read while Run runs.
func (s *Store) callOnce(ctx context.Context, t *topology, n *node, key string) error {
	d := s.newDialer(n.addr, t.cluster)
	conn, err := d.dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(s.opts.DialTimeout))
	return d.try(conn, d.probeBatch(opTake, conn.opts, []limit.Item{ProbeItem(key, "")}))
}
