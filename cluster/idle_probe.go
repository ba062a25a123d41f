package cluster

import (
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/limit"
)

// An open breaker closes when a call succeeds as its probe. Where no call comes the store would be reported as failing
// long after its outage, so that the proxy makes a call every two or three seconds then. The call is on a bucket of its
// own, with the deadline and the outcome of any other: a master that is slow or refuses writes does not pass.

const (
	// idleProbe is for how long an open breaker waits for a call as its probe.
	idleProbe = time.Second
	// probePrefix is the prefix of the keys of the buckets of probes.
	probePrefix = "lg:probe:"
)

// probeIdle probes the masters whose breakers are open and for which no call comes.
func (s *Store) probeIdle() {
	var items []limit.Item
	var calls []limit.Call
	for n, key := range s.top.Load().keysOf(probePrefix) {
		st := n.breaker.Status()
		if st.State == breaker.Closed || time.Since(st.Probe) < idleProbe || !n.pipeline.connected() {
			continue
		}
		calls = append(calls, limit.Call{First: len(items), Last: len(items) + 1})
		items = append(items, ProbeItem(key, ""))
	}
	now := time.Now()
	s.Take(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: s.opts.DecisionTimeout}, items, calls)
}
