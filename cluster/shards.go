package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/limit"
)

// Shard is the state of one master.
type Shard struct {
	Addr string
	breaker.Status
	// Transitions counts how often the breaker entered each state.
	Transitions [3]int64
	// Failures counts calls that the master left undecided, by Kind.
	Failures [numKinds]int64
	Traffic  Traffic
	// Ping is the error of a ping of PingShards.
	Ping error
}

// PingDiffers reports whether the ping failed for another reason than the call before it, such as a node that is back and demands a password.
// A ping without a reply in time says nothing new.
func (sh *Shard) PingDiffers() bool {
	kind := kindOf(sh.Ping)
	return kind != kindOf(sh.Err) && kind != KindTimeout
}

// Shards returns the state of every master, sorted by address.
func (s *Store) Shards() []Shard {
	var all []Shard
	for addr, n := range s.top.Load().nodes {
		sh := Shard{Addr: addr, Status: n.breaker.Status(), Traffic: n.pipeline.measure()}
		for i := range sh.Transitions {
			sh.Transitions[i] = n.changes[i].Load()
		}
		for i := range sh.Failures {
			sh.Failures[i] = n.failures[i].Load()
		}
		if since, err := n.refuses(); err != nil && (sh.Err == nil || since.Before(sh.Since)) { // a read that succeeds ends the breaker's
			sh.Err, sh.Since = err, since
		}
		all = append(all, sh)
	}
	slices.SortFunc(all, func(a, b Shard) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
}

// PingShards pings every master, and returns their states as Shards does. A master that answers has no
// error of the network any more, and runs no script, unless its breaker is open. The error is that of the last fetch of the
// topology, if that failed, or of the first ping that did, or that of Unowned.
func (s *Store) PingShards(ctx context.Context) ([]Shard, error) {
	var mu sync.Mutex // guards errs
	errs := map[string]error{}
	var wg sync.WaitGroup
	for addr, n := range s.top.Load().nodes {
		wg.Go(func() {
			err := n.client.Ping(ctx).Err()
			if err == nil {
				n.breaker.Forget(endsWithPing)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			errs[addr] = err
		})
	}
	wg.Wait()
	all := s.Shards()
	var first error
	for i := range all {
		if all[i].Ping = errs[all[i].Addr]; all[i].Ping != nil && first == nil {
			first = fmt.Errorf("ping %s: %w", all[i].Addr, all[i].Ping)
		}
	}
	if err := s.topErr.Load(); err != nil {
		return all, *err
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("ping store: %w", s.unreached())
	}
	if first == nil {
		first = s.Unowned()
	}
	return all, first
}

// endsWithPing reports whether an answered ping shows that err is past: a node that runs a script or loads its data answers none.
func endsWithPing(err error) bool {
	switch kindOf(err) {
	case KindTimeout, KindNetwork, KindBusy, KindLoading:
		return true
	}
	return false
}

// anyOpen reports whether the breaker of any master is not closed.
func (s *Store) anyOpen() bool {
	for _, n := range s.top.Load().nodes {
		if n.breaker.State() != breaker.Closed {
			return true
		}
	}
	return false
}

// Answers reports whether at least one master is known, all masters are connected and their
// breakers are closed. A discovered node does not count.
func (s *Store) Answers() bool {
	top := s.top.Load()
	for addr, n := range top.nodes {
		if !top.discovered[addr] && (n.breaker.State() != breaker.Closed || !n.pipeline.connected()) {
			return false
		}
	}
	return len(top.nodes) > 0
}

// Pause returns for how long the breaker of an item's shard blocks calls, see
// limiter.Store.
func (s *Store) Pause(it *limit.Item) time.Duration {
	n := s.top.Load().nodeOf(it)
	if n == nil || n.breaker.State() == breaker.Closed {
		return 0
	}
	return max(0, time.Until(n.breaker.Status().Probe))
}

// NodeInfo is a node's reply to INFO.
type NodeInfo struct {
	Text string
	Err  error
}

// Info returns a section of INFO of each known node, by address.
func (s *Store) Info(ctx context.Context, section string) map[string]NodeInfo {
	infos := map[string]NodeInfo{}
	for addr, n := range s.top.Load().nodes {
		text, err := n.client.Info(ctx, section).Result()
		infos[addr] = NodeInfo{text, err}
	}
	return infos
}
