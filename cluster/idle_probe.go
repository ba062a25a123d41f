package cluster

import (
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/limit"
)

// An open breaker closes when a call succeeds as its probe. Where no call comes the store would be reported as failing
// long after its outage, so that the proxy makes a call every two or three seconds then. The call is on a bucket of its
// own, with the deadline and the outcome of any other: a master that is slow or refuses writes does not pass. A master
// that has refused a write is called each half second, as other calls may only read meanwhile.

const (
	// idleProbe is for how long an open breaker waits for a call as its probe.
	idleProbe = time.Second
	// probePrefix is the prefix of the keys of the buckets of probes.
	probePrefix = "lg:probe:"
)

// probeIdle probes the masters whose breakers are open and for which no call comes, and those that refuse writes.
func (s *Store) probeIdle() {
	var items []limit.Item
	var nodes []*node // of the items
	var calls []limit.Call
	for n, key := range s.top.Load().keysOf(probePrefix) {
		st := n.breaker.Status()
		if st.State == breaker.Closed && n.refuses() == nil || st.State != breaker.Closed && time.Since(st.Probe) < idleProbe || !n.pipeline.connected() {
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
		if n.refuses() != nil {
			return true
		}
	}
	return false
}
