package server

import "time"

// expiry is the instant at which a session has waited long enough. It is void when
// the connection has gone on to something else.
type expiry struct {
	c   *polled
	seq uint64
	at  time.Time
}

// expiries is a heap, the earliest first. Most are pushed in their order, which
// costs one comparison.
type expiries []expiry

func (q *expiries) push(e expiry) {
	*q = append(*q, e)
	h := *q
	for i := len(h) - 1; i > 0; {
		above := (i - 1) / 2
		if !h[i].at.Before(h[above].at) {
			return
		}
		h[i], h[above] = h[above], h[i]
		i = above
	}
}

// first returns the earliest, or nil.
func (q expiries) first() *expiry {
	if len(q) == 0 {
		return nil
	}
	return &q[0]
}

// drop removes the earliest.
func (q *expiries) drop() {
	h := *q
	last := len(h) - 1
	h[0], h[last] = h[last], expiry{}
	h = h[:last]
	*q = h
	for i := 0; ; {
		least := i
		for below := 2*i + 1; below <= 2*i+2 && below < last; below++ {
			if h[below].at.Before(h[least].at) {
				least = below
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
