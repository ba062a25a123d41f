package cluster

import (
	"cmp"
	"context"
	"slices"
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
		all = append(all, sh)
	}
	slices.SortFunc(all, func(a, b Shard) int { return cmp.Compare(a.Addr, b.Addr) })
	return all
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
