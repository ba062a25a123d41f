package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

// A user may be allowed to read the topology, and not to run the script or to write its keys. Calls alone show that, so Open makes
// one at each master before the first of a client.

// forbidden makes a call on a bucket of its own at each master of a topology that is connected, and returns the errors if all that
// answer forbid it. A store that forbids calls at some masters decides those of the others, now or when these are well again: the
// errors become outcomes of connected.
func (s *Store) forbidden(ctx context.Context, t *topology, connected map[*node]error) error {
	var mu sync.Mutex // guards forbids and may
	forbids := map[*node]error{}
	may := false // some master decides, or has another reason not to
	var wg sync.WaitGroup
	// A bucket that exists is written by another command, and the rights of a user may have no keys of buckets besides those of tenants.
	for n, key := range t.keysOf("lg:t:{probe:"+rand.Text()+":", "}") {
		wg.Go(func() {
			err := connected[n]
			if err == nil {
				err = s.callOnce(ctx, t, n, key)
			}
			mu.Lock()
			defer mu.Unlock()
			if Forbidden(err) {
				forbids[n] = err
			} else if _, replied := resp.AsError(causeOf(err)); err == nil || replied {
				may = true
			}
		})
	}
	wg.Wait()
	if may || len(forbids) == 0 {
		maps.Copy(connected, forbids)
		return nil
	}
	var all topologyErrors
	for n, err := range forbids {
		all = append(all, topologyError{n.addr, err})
	}
	slices.SortFunc(all, func(a, b topologyError) int { return cmp.Compare(a.addr, b.addr) })
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
