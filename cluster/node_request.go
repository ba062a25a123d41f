package cluster

import (
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// op is what the script is asked to do with a call.
type op uint8

const (
	opTake op = iota
	opPeek
	opRefund
	opSettle
)

// nodeRequest is what one caller asks of one node, on its way through the node's
// lane. The caller waits for it until its deadline, and leaves then: what comes
// later no longer reaches its items.
type nodeRequest struct {
	op    op
	calls []limit.Call
	// sendBy is when it is too late to send: the reply takes its time too, and
	// what is charged after the caller has left is charged for nothing.
	sendBy time.Time
	// route is how its calls travel.
	route route
	// settlement is what its only call settles, of verbSettle.
	settlement *settlement
	request    *request // nil for probes

	mu        sync.Mutex   // guards what follows, and the items from submit to leave
	items     []limit.Item // of the caller
	open      int          // calls without an answer
	sent      bool
	abandoned bool
	retries   []retry // calls that are to be asked for once more
	// refunds counts the calls that gave their units back, or found that they no
	// longer weigh.
	refunds int
	// lost counts the buckets of calls that may have taken units although they
	// stay undecided: their connection ended before the reply.
	lost int
}

// reset makes the ticket ready for another journey. Nobody else may know it.
func (nr *nodeRequest) reset(what op, via route, items []limit.Item, sendBy time.Time) {
	nr.op, nr.route, nr.items, nr.sendBy = what, via, items, sendBy
	nr.calls, nr.retries = nr.calls[:0], nr.retries[:0]
	nr.sent, nr.abandoned, nr.refunds, nr.lost, nr.settlement = false, false, 0, 0, nil
}

// answered counts one call less to wait for, and reports whether it was the last:
// then finished must be called. It is called under t.mu, and finished is not.
func (nr *nodeRequest) answered() (last bool) {
	nr.open--
	return nr.open == 0
}

// notifyDone is called when every call is answered.
func (nr *nodeRequest) notifyDone() {
	if nr.request != nil { // probes have none
		nr.request.onNodeDone()
	}
}

// abandon ends the wait, and reports whether every call was answered nevertheless.
func (nr *nodeRequest) abandon() (answered bool) {
	nr.mu.Lock()
	defer nr.mu.Unlock()
	nr.abandoned = nr.open > 0
	return !nr.abandoned
}
