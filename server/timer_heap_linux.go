package server

import "time"

// timer is the deadline of a connection. The heap holds at most one entry for each
// connection, so its size is bounded by their number however often a deadline moves.
type timer struct {
	due time.Time // zero if there is none
	at  time.Time // position in the heap: not after due
	pos int       // index in the heap plus one; 0 outside of it
}

// timerHeap holds connections, the one with the earliest timer.at first. A deadline that
// moves to a later time keeps its position until that time comes. The usual case, one
// deadline after the other, thus costs one comparison.
type timerHeap []*epollConn

// set sets the deadline of a connection; a zero deadline is never reached.
func (q *timerHeap) set(c *epollConn, due time.Time) {
	t := &c.timer
	t.due = due
	switch {
	case due.IsZero():
	case t.pos == 0:
		t.at = due
		*q = append(*q, c)
		t.pos = len(*q)
		q.up(len(*q) - 1)
	case due.Before(t.at):
		t.at = due
		q.up(t.pos - 1)
	}
}

// next returns when to call pop, or zero.
func (q timerHeap) next() time.Time {
	if len(q) == 0 {
		return time.Time{}
	}
	return q[0].timer.at
}

// pop returns a connection whose deadline has come, and clears the deadline, or nil if
// there is none.
func (q *timerHeap) pop(now time.Time) *epollConn {
	for len(*q) > 0 {
		c := (*q)[0]
		t := &c.timer
		if now.Before(t.at) {
			return nil
		}
		if !t.due.IsZero() && now.Before(t.due) {
			t.at = t.due
			q.down(0)
			continue
		}
		due := t.due
		q.remove(c)
		if !due.IsZero() {
			return c
		}
	}
	return nil
}

// remove removes the deadline of a connection.
func (q *timerHeap) remove(c *epollConn) {
	h := *q
	i, last := c.timer.pos-1, len(h)-1
	c.timer = timer{}
	if i < 0 {
		return
	}
	moved := h[last]
	h[last] = nil
	*q = h[:last]
	if i == last {
		return
	}
	h[i] = moved
	moved.timer.pos = i + 1
	q.up(i)
	q.down(moved.timer.pos - 1)
}

func (q timerHeap) up(i int) {
	for i > 0 {
		above := (i - 1) / 2
		if !q[i].timer.at.Before(q[above].timer.at) {
			return
		}
		q.swap(i, above)
		i = above
	}
}

func (q timerHeap) down(i int) {
	for {
		least := i
		for below := 2*i + 1; below <= 2*i+2 && below < len(q); below++ {
			if q[below].timer.at.Before(q[least].timer.at) {
				least = below
			}
		}
		if least == i {
			return
		}
		q.swap(i, least)
		i = least
	}
}

func (q timerHeap) swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].timer.pos, q[j].timer.pos = i+1, j+1
}
