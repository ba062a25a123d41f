package cluster

import (
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// verb is what the script is asked to do with a call.
type verb uint8

const (
	verbTake verb = iota
	verbPeek
	verbRefund
	verbSettle
)

// ticket is what one caller asks of one node, on its way through the node's
// lane. The caller waits for it until its deadline, and leaves then: what comes
// later no longer reaches its items.
type ticket struct {
	verb  verb
	calls []limit.Call
	// sendBy is when it is too late to send: the reply takes its time too, and
	// what is charged after the caller has left is charged for nothing.
	sendBy time.Time
	// way is how its calls travel.
	way way
	// settlement is what its only call settles, of verbSettle.
	settlement *settlement
	// done holds one token soon after every call was answered: the reader tells the
	// callers of a flight together. Where nobody waits for it, trip is told instead.
	done chan struct{}
	trip *trip

	mu    sync.Mutex   // guards what follows, and the items from submit to leave
	items []limit.Item // of the caller
	open  int          // calls without an answer
	sent  bool
	left  bool
	again []detour // calls that are to be asked for once more
	// refunds counts the calls that gave their units back, or found that they no
	// longer weigh.
	refunds int
	// lost counts the buckets of calls that may have taken units although they
	// stay undecided: their connection ended before the reply.
	lost int
}

func newTicket() *ticket { return &ticket{done: make(chan struct{}, 1)} }

// reset makes the ticket ready for another journey. Nobody else may know it.
func (t *ticket) reset(v verb, w way, items []limit.Item, sendBy time.Time) {
	t.verb, t.way, t.items, t.sendBy = v, w, items, sendBy
	t.calls, t.again = t.calls[:0], t.again[:0]
	t.sent, t.left, t.refunds, t.lost, t.settlement = false, false, 0, 0, nil
}

// answered counts one call less to wait for, and reports whether it was the last:
// then finished must be called. It is called under t.mu, and finished is not.
func (t *ticket) answered() (last bool) {
	t.open--
	return t.open == 0
}

// finished tells whoever waits that every call is answered.
func (t *ticket) finished() {
	if t.trip != nil {
		t.trip.finished()
		return
	}
	t.done <- struct{}{}
}

// wait waits until every call is answered or time is up, and reports which.
func (t *ticket) wait(timeout <-chan time.Time) bool {
	select {
	case <-t.done:
		return true
	case <-timeout:
		return t.leave()
	}
}

// leave ends the wait, and reports whether every call was answered nevertheless.
func (t *ticket) leave() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == 0 {
		if t.trip == nil {
			<-t.done
		}
		return true
	}
	t.left = true
	return false
}
