package cluster

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
