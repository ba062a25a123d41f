package cluster

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/limit"
)

// request is one caller's request to the store: a nodeRequest for each node involved.
// Requests are pooled.
type request struct {
	used  []*nodeRequest
	nodes []*node // the node of each used request
	spare []*nodeRequest

	store *Store
	items []limit.Item       // of Start's caller
	done  func(token uint64) // called when every node has answered
	token uint64
	open  atomic.Int32 // nodes that have not answered
	// called is set when done has been called, or will never be.
	called atomic.Bool
	// end is the method value finishForRetry, allocated once.
	end func() (retry bool)
	// wake, answered and timer are for callers that wait: wake is a done that sends to
	// answered, which has room for one value.
	wake     func(token uint64)
	answered chan struct{}
	timer    *time.Timer
}

var requests = sync.Pool{New: func() any {
	req := &request{answered: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	req.timer.Stop()
	req.wake = func(uint64) { req.answered <- struct{}{} }
	return req
}}

// Take decides each call all or nothing, see limiter.Store.
func (s *Store) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.do(at.Deadline(), opTake, items, calls)
}

// Peek returns the verdicts that Take would return, and takes nothing.
func (s *Store) Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.do(at.Deadline(), opPeek, items, calls)
}

// Start starts a Take without waiting for it, see limiter.Store.
func (s *Store) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) (end func() bool) {
	now := time.Now()
	left := at.Deadline().Sub(now)
	if left <= 0 {
		s.recordOverdue(items, calls)
		return nil
	}
	req := requests.Get().(*request)
	if req.items = items; req.end == nil {
		req.end = req.finishForRetry
	}
	req.routeCalls(s, opTake, items, calls, now, left)
	req.start(s, false, done, token)
	return req.end
}

// Flush sends the calls that Start has enqueued, see limiter.Store.
func (s *Store) Flush() {
	for _, p := range s.top.Load().pipelines {
		if p.unsent.Load() {
			p.trySend()
		}
	}
}

// do has the owners of the calls' hash slots decide the calls concurrently. It returns when
// all have answered or the deadline has passed, with the number of refunds that were made.
func (s *Store) do(deadline time.Time, what op, items []limit.Item, calls []limit.Call) (refunds int) {
	if len(calls) == 0 {
		return 0
	}
	req := requests.Get().(*request)
	now := time.Now()
	req.routeCalls(s, what, items, calls, now, deadline.Sub(now))
	again := s.await(req, deadline, &refunds)
	return refunds + s.retryAll(deadline, what, items, again)
}

// await sends a request, waits for its answers until the deadline, and finishes it. It
// returns the calls to retry.
func (s *Store) await(req *request, deadline time.Time, refunds *int) (again []retry) {
	req.start(s, true, req.wake, 0)
	req.timer.Reset(time.Until(deadline))
	late := false
	select {
	case <-req.answered:
	case <-req.timer.C:
		late = true
	}
	req.timer.Stop()
	again, made := req.finish(late)
	for _, r := range again {
		s.redirected(r.err)
	}
	*refunds += made
	return again
}

// start enqueues the node requests, to be sent now or at Flush.
func (req *request) start(s *Store, now bool, done func(token uint64), token uint64) {
	req.store, req.done, req.token = s, done, token
	req.called.Store(false)
	// One more than there are nodes: done is not called before all requests are enqueued.
	req.open.Store(int32(len(req.used)) + 1)
	for i, nr := range req.used {
		nr.request = req
		req.nodes[i].pipeline.enqueue(nr, now)
	}
	req.onNodeDone()
}

// onNodeDone is called when a node has answered its part.
func (req *request) onNodeDone() {
	if req.open.Add(-1) > 0 {
		return
	}
	done, token := req.done, req.token // once called is set the request may be reused
	if !req.called.Swap(true) {
		done(token)
	}
}

// finishForRetry is finish for Start: it marks the items of the calls to retry, and reports
// whether there are any. Take retries them from their first route, and counts redirects.
func (req *request) finishForRetry() (retry bool) {
	items, s := req.items, req.store
	again, _ := req.finish(false)
	for _, r := range again {
		items[r.call.First].Retry = true
		if kindOf(r.err).needsReload() {
			s.requestReload()
		}
	}
	return len(again) > 0
}

// finish ends a request, answered or not. It returns the calls to retry and the number of
// refunds that were made. late means that the caller has not received from answered,
// although wake may have been called.
func (req *request) finish(late bool) (again []retry, refunds int) {
	// The goroutine that answered the last call may still be about to use a request whose
	// done was not called: such a request is not reused.
	reusable := req.called.Swap(true)
	if reusable && late {
		<-req.answered // wake was called, or is about to be
	}
	for i, nr := range req.used {
		if !nr.abandon() {
			req.store.recordAbandoned(req.nodes[i], nr)
			continue
		}
		again = append(again, nr.retries...)
		refunds += nr.refunds
		req.store.counts.refundsLost.Add(int64(nr.lost))
	}
	if !reusable {
		return again, refunds
	}
	for _, nr := range req.used {
		nr.request = nil
		req.spare = append(req.spare, nr)
	}
	clear(req.nodes)
	clear(req.used)
	req.used, req.nodes, req.items, req.done, req.store = req.used[:0], req.nodes[:0], nil, nil, nil
	requests.Put(req)
	return again, refunds
}

// routeCalls adds each call to a node request for its node. The decision has left time:
// nothing is sent after half of it.
func (req *request) routeCalls(s *Store, what op, items []limit.Item, calls []limit.Call, now time.Time, left time.Duration) {
	top, alone := s.top.Load(), slices.ContainsFunc(calls, what.isAlone)
	for _, c := range calls {
		if n := top.nodeOf(&items[c.First]); n != nil {
			req.addCall(s, n, what, items, c, route{}, alone, now, left)
		} else {
			s.recordFailure(nil, errNoNode, items[c.First:c.Last])
		}
	}
}

// addCall adds a call to a node request for a node. Alone reports that a call of the caller has a command of its own: all of
// its calls then wait in one queue, so that they stay in order.
func (req *request) addCall(s *Store, n *node, what op, items []limit.Item, c limit.Call, via route, alone bool, now time.Time, left time.Duration) {
	nr := req.nodeRequestFor(n, via, alone)
	if nr == nil {
		if !n.allow(what, now) {
			s.recordFailure(n, errBreaker, items[c.First:c.Last])
			return
		}
		nr = req.newNodeRequest(n)
		nr.reset(what, via, items, now.Add(left/2))
		nr.alone = alone
	}
	nr.calls = append(nr.calls, c)
}

// nodeRequestFor returns the node request for a node and a route that has room, or nil.
func (req *request) nodeRequestFor(n *node, via route, alone bool) *nodeRequest {
	for i := len(req.used) - 1; i >= 0; i-- {
		if req.nodes[i] == n && req.used[i].route == via && req.used[i].alone == alone {
			if len(req.used[i].calls) == roomOf(alone) {
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
		nr = new(nodeRequest)
	}
	req.used = append(req.used, nr)
	req.nodes = append(req.nodes, n)
	return nr
}

// recordOverdue counts calls whose deadline has passed before they could be sent.
func (s *Store) recordOverdue(items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		s.recordFailure(nil, errOverload, items[c.First:c.Last])
	}
}

// recordAbandoned counts the calls that a caller left before they were answered. The units
// that they took stay taken.
func (s *Store) recordAbandoned(n *node, nr *nodeRequest) {
	nr.mu.Lock()
	defer nr.mu.Unlock()
	why := errOverload
	if nr.sent {
		why = errOverdue
	}
	n.reportHealth(why)
	outcome := nr.unsent(why)
	if nr.sent {
		outcome = breaker.Outcome{Failed: 1, Err: why}
	}
	n.breaker.Record(time.Now(), outcome)
	for _, c := range nr.calls {
		items := nr.items[c.First:c.Last]
		if items[0].Source != limit.SourceNone {
			continue
		}
		s.recordFailure(n, why, items)
		if nr.sent && nr.op == opTake && items[0].Limit != probeLimit { // of a probe nobody loses units
			s.counts.refundsLost.Add(int64(len(items)))
		}
	}
}

// op is the operation of the script on a call.
type op uint8

const (
	opTake op = iota
	opPeek
	opRefund
	opSettle
)

// isAlone reports whether a call has a command of its own, for the record of its answer.
func (what op) isAlone(c limit.Call) bool { return what != opPeek && c.RecordKey != nil }

// nodeRequest is one caller's request to one node, sent through the node's pipeline. The
// caller waits for it until its deadline. After that a reply no longer changes the caller's
// items.
type nodeRequest struct {
	op    op
	calls []limit.Call
	// sendBy is the latest time to send the calls: the reply takes time too, and units that
	// are taken after the caller has left are wasted.
	sendBy     time.Time
	route      route       // of its calls
	alone      bool        // it waits in the queue of calls that have commands of their own
	settlement *settlement // of its only call, for opSettle
	request    *request    // nil for a probe

	mu        sync.Mutex   // guards the fields below, and the items from enqueue to abandon
	items     []limit.Item // of the caller
	open      int          // number of unanswered calls
	sent      bool
	abandoned bool
	retries   []retry // calls to retry
	// refunds counts the calls that returned their units, or whose units no longer counted.
	refunds int
	// lost counts the buckets of undecided calls that may have taken units: the connection
	// ended before the reply.
	lost int
}

// reset prepares the node request for its next use. The caller must hold the only
// reference.
func (nr *nodeRequest) reset(what op, via route, items []limit.Item, sendBy time.Time) {
	nr.op, nr.route, nr.items, nr.sendBy = what, via, items, sendBy
	nr.calls, nr.retries = nr.calls[:0], nr.retries[:0]
	nr.sent, nr.abandoned, nr.refunds, nr.lost, nr.settlement, nr.alone = false, false, 0, 0, nil, false
}

// answered counts one call as answered and reports whether it was the last one: the caller
// must then call notifyDone, after releasing nr.mu, which it holds for answered.
func (nr *nodeRequest) answered() (last bool) {
	nr.open--
	return nr.open == 0
}

// notifyDone is called when every call is answered.
func (nr *nodeRequest) notifyDone() {
	if nr.request != nil { // nil for a probe
		nr.request.onNodeDone()
	}
}

// abandon ends the wait. It reports whether every call was answered already.
func (nr *nodeRequest) abandon() (answered bool) {
	nr.mu.Lock()
	defer nr.mu.Unlock()
	nr.abandoned = nr.open > 0
	return !nr.abandoned
}
