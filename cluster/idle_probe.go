package cluster

import (
	"context"
	"sync"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/limit"
)

// An open breaker closes when a call succeeds as its probe. Where no call comes the store would be reported as failing
// long after its outage, so that the proxy makes a call every two or three seconds then. The call is on a bucket of its
// own, with the deadline and the outcome of any other: a master that is slow or refuses writes does not pass. The same holds of a master
// with a closed breaker whose last call has failed.
//
// A master that refuses writes and answers reads has a closed breaker, and where calls only read nothing shows that it takes
// writes again. The proxy writes a key of its own each half second then. The outcome is none of the breaker: the reads
// are right.

const (
	// idleProbe is for how long an open breaker waits for a call as its probe.
	idleProbe = time.Second
	// probePrefix is the prefix of the keys of the buckets of probes, and writePrefix of the keys that probeWrites writes.
	probePrefix = "lg:probe:"
	writePrefix = probePrefix + "write:"
	// writeTTL is the expiry of these keys.
	writeTTL = time.Second
)

// isLate reports whether the last calls to a node with a closed breaker have failed, for a while, and it refuses no writes.
func (n *node) isLate() bool {
	since := n.sick.Load()
	if since == 0 || time.Since(time.Unix(0, since)) < idleProbe || n.breaker.State() != breaker.Closed {
		return false
	}
	_, refusal := n.refuses()
	return refusal == nil
}

// anyLate reports whether any master isLate.
func (s *Store) anyLate() bool {
	for _, n := range s.top.Load().nodes {
		if n.isLate() {
			return true
		}
	}
	return false
}

// probeIdle probes the masters whose breakers are open, and for which no call comes, and those that are late.
func (s *Store) probeIdle() {
	var items []limit.Item
	var nodes []*node // of the items
	var calls []limit.Call
	for n, key := range s.top.Load().keysOf(probePrefix, "") {
		st := n.breaker.Status()
		if waits := st.State != breaker.Closed && time.Since(st.Probe) >= idleProbe; !waits && !n.isLate() || !n.pipeline.connected() {
			continue
		}
		nodes = append(nodes, n)
		calls = append(calls, limit.Call{First: len(items), Last: len(items) + 1})
		items = append(items, ProbeItem(key, ""))
	}
	now := time.Now()
	s.Take(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: s.opts.DecisionTimeout}, items, calls)
	for i := range items {
		if items[i].Source == limit.SourceStore && items[i].Verdict.Allowed {
			nodes[i].reportWrite()
		}
	}
}

// anyRefuses reports whether any master has refused a write, and has not taken one since.
func (s *Store) anyRefuses() bool {
	for _, n := range s.top.Load().nodes {
		if _, err := n.refuses(); err != nil {
			return true
		}
	}
	return false
}

// probeWrites writes to the masters that refuse writes and whose breakers are closed.
func (s *Store) probeWrites(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, openReload)
	defer cancel()
	var wg sync.WaitGroup
	for n, key := range s.top.Load().keysOf(writePrefix, "") {
		if _, err := n.refuses(); err == nil || n.breaker.State() != breaker.Closed {
			continue
		}
		wg.Go(func() {
			switch err := n.client.Set(ctx, key, 1, writeTTL).Err(); {
			case err == nil:
				n.breaker.Forget(func(err error) bool { return RefusesWrites(err) != "" })
				n.reportWrite()
			case RefusesWrites(err) != "":
				n.reportHealth(err)
			}
		})
	}
	wg.Wait()
}
