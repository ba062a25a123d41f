package cluster

import (
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// op is the operation of the script on a call.
type op uint8

const (
	opTake op = iota
	opPeek
	opRefund
	opSettle
)

// nodeRequest is one caller's request to one node, sent through the node's pipeline. The
// caller waits for it until its deadline. After that a reply no longer changes the caller's
// items.
type nodeRequest struct {
	op    op
	calls []limit.Call
	// sendBy is the latest time to send the calls: the reply takes time too, and units that
	// are taken after the caller has left are wasted.
	sendBy time.Time
	// route is the route of its calls.
	route route
	// settlement is the settlement of its only call, for opSettle.
	settlement *settlement
	request    *request // nil for a probe

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
	nr.sent, nr.abandoned, nr.refunds, nr.lost, nr.settlement = false, false, 0, 0, nil
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
