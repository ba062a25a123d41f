package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/breaker"
	"github.com/limitgate/limitgate/limit"
)

// request is what one caller asks of the whole store: a ticket for each node it
// needs, and one timer for all.
type request struct {
	timer *time.Timer
	used  []*nodeRequest
	nodes []*node // of used
	spare []*nodeRequest

	// Of a trip that nobody waits for: what to call when all tickets are answered,
	// how many are not, and whether it was called or never will be.
	store  *Store
	done   func(token uint64)
	token  uint64
	open   atomic.Int32
	called atomic.Bool
	end    func() bool // finish
}

// onNodeDone is called when a ticket is answered.
func (req *request) onNodeDone() {
	if req.open.Add(-1) > 0 {
		return
	}
	done, token := req.done, req.token // once called is set the trip may be used again
	if !req.called.Swap(true) {
		done(token)
	}
}

var requests = sync.Pool{New: func() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &request{timer: timer}
}}

// Take decides each call all or nothing, see limiter.Store.
func (s *Store) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.do(at.Deadline(), opTake, items, calls)
}

// Peek gives the verdicts that Take would give, and takes nothing.
func (s *Store) Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.do(at.Deadline(), opPeek, items, calls)
}

// Start begins what Take does, see limiter.Store.
func (s *Store) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) (end func() bool) {
	now := time.Now()
	left := at.Deadline().Sub(now)
	if left <= 0 {
		for _, c := range calls {
			s.recordFailure(nil, errOverload, items[c.First:c.Last])
		}
		return nil
	}
	req := requests.Get().(*request)
	req.routeCalls(s, opTake, items, calls, now, left)
	req.store, req.done, req.token = s, done, token
	req.called.Store(false)
	if req.end == nil {
		req.end = req.finish
	}
	// One more than there are tickets, so that done is not called before all are
	// on their way.
	req.open.Store(int32(len(req.used)) + 1)
	for i, nr := range req.used {
		nr.request = req
		req.nodes[i].pipeline.enqueue(nr, false)
	}
	req.onNodeDone()
	return req.end
}

// Flush sends what Ask has begun, see limiter.Store.
func (s *Store) Flush() {
	for _, p := range s.top.Load().pipelines {
		if p.unsent.Load() {
			p.trySend()
		}
	}
}

// finish ends a trip that was begun with Ask, answered or not. It reports whether
// there are calls that must be asked again.
func (req *request) finish() (again bool) {
	// A trip that is left before it is done may still be on its way to saying so:
	// it is not used again.
	reusable := req.called.Swap(true)
	for i, nr := range req.used {
		if !nr.abandon() {
			req.store.recordAbandoned(req.nodes[i], nr)
			continue
		}
		for _, d := range nr.retries {
			nr.items[d.call.First].Retry = true
			again = true
		}
		req.store.counts.refundsLost.Add(int64(nr.lost))
	}
	if !reusable {
		return again
	}
	for _, nr := range req.used {
		nr.request = nil
		req.spare = append(req.spare, nr)
	}
	req.done, req.store = nil, nil
	req.release()
	return again
}

// release lets the trip be used again. Its tickets that may be, too, are spare.
func (req *request) release() {
	clear(req.nodes)
	clear(req.used)
	req.used, req.nodes = req.used[:0], req.nodes[:0]
	requests.Put(req)
}

// do has the owners of the calls' slots decide them, all at the same time, and
// returns when all have answered or the deadline has passed. It returns the number
// of refunds that were made.
func (s *Store) do(deadline time.Time, what op, items []limit.Item, calls []limit.Call) (done int) {
	if len(calls) == 0 {
		return 0
	}
	req := requests.Get().(*request)
	now := time.Now()
	req.routeCalls(s, what, items, calls, now, deadline.Sub(now))
	again := s.await(req, deadline, &done)
	return done + s.retryAll(deadline, what, items, again)
}

// await sends the tickets of a trip and waits for the answers. It returns the calls
// that are to be asked for again.
func (s *Store) await(req *request, deadline time.Time, done *int) (again []retry) {
	req.timer.Reset(time.Until(deadline))
	for i, nr := range req.used {
		req.nodes[i].pipeline.enqueue(nr, true)
	}
	late := false
	for i, nr := range req.used {
		if late = late || !time.Now().Before(deadline); late && !nr.abandon() || !late && !nr.wait(req.timer.C) {
			late = true
			s.recordAbandoned(req.nodes[i], nr)
			continue
		}
		*done += nr.refunds
		s.counts.refundsLost.Add(int64(nr.lost))
		for _, d := range nr.retries {
			s.redirected(d.err)
			again = append(again, d)
		}
		req.spare = append(req.spare, nr)
	}
	req.timer.Stop()
	req.release()
	return again
}

// routeCalls puts each call on a ticket for its node. The decision has so much time
// left: after half of it nothing is sent any more.
func (req *request) routeCalls(s *Store, what op, items []limit.Item, calls []limit.Call, now time.Time, left time.Duration) {
	top := s.top.Load()
	for _, c := range calls {
		if n := top.nodeOf(&items[c.First]); n != nil {
			req.addCall(s, n, what, items, c, route{}, now, left)
		} else {
			s.recordFailure(nil, errNoNode, items[c.First:c.Last])
		}
	}
}

// addCall puts a call on a ticket for a node.
func (req *request) addCall(s *Store, n *node, what op, items []limit.Item, c limit.Call, via route, now time.Time, left time.Duration) {
	nr := req.nodeRequestFor(n, via)
	if nr == nil {
		if !n.allow(what, now) {
			s.recordFailure(n, errBreaker, items[c.First:c.Last])
			return
		}
		nr = req.newNodeRequest(n)
		nr.reset(what, via, items, now.Add(left/2))
	}
	nr.calls = append(nr.calls, c)
}

// nodeRequestFor returns the nodeRequestFor for a node and a way that has room, or nil.
func (req *request) nodeRequestFor(n *node, via route) *nodeRequest {
	for i := len(req.used) - 1; i >= 0; i-- {
		if req.nodes[i] == n && req.used[i].route == via {
			if len(req.used[i].calls) == maxBatch {
				return nil
			}
			return req.used[i]
		}
	}
	return nil
}

func (req *request) newNodeRequest(n *node) *nodeRequest {
	var nr *nodeRequest
	if last := len(req.spare) - 1; last >= 0 {
		nr = req.spare[last]
		req.spare = req.spare[:last]
	} else {
		nr = newNodeRequest()
	}
	req.used = append(req.used, nr)
	req.nodes = append(req.nodes, n)
	return nr
}

// recordAbandoned counts the calls that a caller left before they were answered.
// Units that they took stay taken.
func (s *Store) recordAbandoned(n *node, nr *nodeRequest) {
	nr.mu.Lock()
	defer nr.mu.Unlock()
	why := errOverload
	if nr.sent {
		why = errOverdue
	}
	n.reportHealth(why)
	outcome := breaker.Outcome{Stuck: 1, Err: why}
	if nr.sent {
		outcome = breaker.Outcome{Failed: 1, Err: why}
	}
	n.breaker.Record(time.Now(), outcome)
	for _, c := range nr.calls {
		group := nr.items[c.First:c.Last]
		if group[0].Source != limit.SourceNone {
			continue
		}
		s.recordFailure(n, why, group)
		if nr.sent && nr.op == opTake {
			s.counts.refundsLost.Add(int64(len(group)))
		}
	}
}
