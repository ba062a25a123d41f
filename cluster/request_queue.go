package cluster

import (
	"errors"

	"github.com/limitgate/limitgate/internal/breaker"
)

// requestQueue is node requests that wait for a batch, in order of arrival.
type requestQueue struct {
	requests []*nodeRequest
	calls    int // of all of them
}

// add adds a node request at the end.
func (q *requestQueue) add(nr *nodeRequest) {
	q.requests = append(q.requests, nr)
	q.calls += len(nr.calls)
}

// moveTo moves the first node requests into a batch: at least one, if there is one, and as many as have most calls together.
func (q *requestQueue) moveTo(b *batch, most int) {
	n, calls := 0, 0
	for n < len(q.requests) && (n == 0 || calls+len(q.requests[n].calls) <= most) {
		calls += len(q.requests[n].calls)
		n++
	}
	b.requests = append(b.requests, q.requests[:n]...)
	q.calls -= calls
	rest := copy(q.requests, q.requests[n:])
	clear(q.requests[rest:])
	q.requests = q.requests[:rest]
}

// roomOf returns the maximum number of calls of a batch that share commands, or that have their own.
func roomOf(alone bool) int {
	if alone {
		return maxAlone
	}
	return maxBatch
}

// unsent returns what a node request that was not sent means for the breaker of its node. That calls with commands of their
// own waited for too long is no sign of a node that is slow for others.
func (nr *nodeRequest) unsent(why error) breaker.Outcome {
	if nr.alone && errors.Is(why, errOverload) {
		return breaker.Outcome{}
	}
	return breaker.Outcome{Stuck: 1, Err: why}
}
