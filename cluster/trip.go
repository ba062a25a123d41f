package cluster

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/breaker"
	"github.com/limitgate/limitgate/limit"
)

// trip is what one caller asks of the whole store: a ticket for each node it
// needs, and one timer for all.
type trip struct {
	timer *time.Timer
	used  []*ticket
	nodes []*node // of used
	spare []*ticket

	// Of a trip that nobody waits for: what to call when all tickets are answered,
	// how many are not, and whether it was called or never will be.
	store  *Store
	done   func(token uint64)
	token  uint64
	open   atomic.Int32
	called atomic.Bool
	end    func() bool // finish
}

// finished is called when a ticket is answered.
func (tr *trip) finished() {
	if tr.open.Add(-1) > 0 {
		return
	}
	done, token := tr.done, tr.token // once called is set the trip may be used again
	if !tr.called.Swap(true) {
		done(token)
	}
}

var trips = sync.Pool{New: func() any {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return &trip{timer: timer}
}}

// Take decides each call all or nothing, see limiter.Store.
func (s *Store) Take(at limit.Moment, items []limit.Item, calls []limit.Call) {
	s.ask(at.Deadline(), verbTake, items, calls)
}

// Peek gives the verdicts that Take would give, and takes nothing.
func (s *Store) Peek(at limit.Moment, items []limit.Item, calls []limit.Call) {
	s.ask(at.Deadline(), verbPeek, items, calls)
}

// Ask begins what Take does, see limiter.Store.
func (s *Store) Ask(at limit.Moment, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) (end func() bool) {
	now := time.Now()
	left := at.Deadline().Sub(now)
	if left <= 0 {
		for _, c := range calls {
			s.trouble(errOverload, items[c.First:c.Last])
		}
		return nil
	}
	tr := trips.Get().(*trip)
	tr.route(s, verbTake, items, calls, now, left)
	tr.store, tr.done, tr.token = s, done, token
	tr.called.Store(false)
	if tr.end == nil {
		tr.end = tr.finish
	}
	// One more than there are tickets, so that done is not called before all are
	// on their way.
	tr.open.Store(int32(len(tr.used)) + 1)
	for i, t := range tr.used {
		t.trip = tr
		tr.nodes[i].lane.submit(t, false)
	}
	tr.finished()
	return tr.end
}

// Flush sends what Ask has begun, see limiter.Store.
func (s *Store) Flush() {
	for _, l := range s.top.Load().lanes {
		if l.held.Load() {
			l.pump()
		}
	}
}

// finish ends a trip that was begun with Ask, answered or not. It reports whether
// there are calls that must be asked again.
func (tr *trip) finish() (again bool) {
	// A trip that is left before it is done may still be on its way to saying so:
	// it is not used again.
	reusable := tr.called.Swap(true)
	for i, t := range tr.used {
		if !t.leave() {
			tr.store.abandoned(tr.nodes[i], t)
			continue
		}
		for _, c := range t.again {
			t.items[c.First].Again = true
			again = true
		}
		tr.store.counts.refundsLost.Add(int64(t.lost))
	}
	if !reusable {
		return again
	}
	for _, t := range tr.used {
		t.trip = nil
		tr.spare = append(tr.spare, t)
	}
	tr.done, tr.store = nil, nil
	tr.release()
	return again
}

// release lets the trip be used again. Its tickets that may be, too, are spare.
func (tr *trip) release() {
	clear(tr.nodes)
	clear(tr.used)
	tr.used, tr.nodes = tr.used[:0], tr.nodes[:0]
	trips.Put(tr)
}

// ask has the owners of the calls' slots decide them, all at the same time, and
// returns when all have answered or the deadline has passed. Calls whose calendar
// boundaries did not hold the store's clock are asked once more, with those that
// do. It returns the number of refunds that were made.
func (s *Store) ask(deadline time.Time, v verb, items []limit.Item, calls []limit.Call) (done int) {
	again := s.travel(deadline, v, items, calls, &done)
	for _, c := range s.travel(deadline, v, items, again, &done) {
		s.trouble(errJump, items[c.First:c.Last])
	}
	return done
}

// travel asks once, and returns the calls that have to be asked again.
func (s *Store) travel(deadline time.Time, v verb, items []limit.Item, calls []limit.Call, done *int) (again []limit.Call) {
	if len(calls) == 0 {
		return nil
	}
	tr := trips.Get().(*trip)
	now := time.Now()
	left := deadline.Sub(now)
	tr.route(s, v, items, calls, now, left)
	tr.timer.Reset(left)
	for i, t := range tr.used {
		tr.nodes[i].lane.submit(t, true)
	}
	late := false
	for i, t := range tr.used {
		if late = late || !time.Now().Before(deadline); late && !t.leave() || !late && !t.wait(tr.timer.C) {
			late = true
			s.abandoned(tr.nodes[i], t)
			continue
		}
		*done += t.refunds
		s.counts.refundsLost.Add(int64(t.lost))
		again = append(again, t.again...)
		tr.spare = append(tr.spare, t)
	}
	tr.timer.Stop()
	tr.release()
	return again
}

// route puts each call on a ticket for its node. The decision has so much time
// left: after half of it nothing is sent any more.
func (tr *trip) route(s *Store, v verb, items []limit.Item, calls []limit.Call, now time.Time, left time.Duration) {
	top, sendBy := s.top.Load(), now.Add(left/2)
	for _, c := range calls {
		n := top.nodeOf(&items[c.First])
		if n == nil {
			s.trouble(errNoNode, items[c.First:c.Last])
			continue
		}
		t := tr.ticket(n)
		if t == nil && !n.allow(v, now) {
			s.trouble(errBreaker, items[c.First:c.Last])
			continue
		}
		if t == nil {
			t = tr.issue(n)
			t.reset(v, items, sendBy)
		}
		t.calls = append(t.calls, c)
	}
}

// ticket returns the ticket for a node that has room, or nil.
func (tr *trip) ticket(n *node) *ticket {
	for i := len(tr.used) - 1; i >= 0; i-- {
		if tr.nodes[i] == n {
			if len(tr.used[i].calls) == maxFlight {
				return nil
			}
			return tr.used[i]
		}
	}
	return nil
}

func (tr *trip) issue(n *node) *ticket {
	var t *ticket
	if last := len(tr.spare) - 1; last >= 0 {
		t = tr.spare[last]
		tr.spare = tr.spare[:last]
	} else {
		t = newTicket()
	}
	tr.used = append(tr.used, t)
	tr.nodes = append(tr.nodes, n)
	return t
}

// abandoned counts the calls that a caller left before they were answered.
// Units that they took stay taken.
func (s *Store) abandoned(n *node, t *ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	why := errOverload
	if t.sent {
		why = errOverdue
	}
	n.report(why)
	outcome := breaker.Outcome{Stuck: 1, Err: why}
	if t.sent {
		outcome = breaker.Outcome{Failed: 1, Err: why}
	}
	n.breaker.Record(time.Now(), outcome)
	for _, c := range t.calls {
		group := t.items[c.First:c.Last]
		if group[0].Source != limit.SourceNone {
			continue
		}
		s.trouble(why, group)
		if t.sent && t.verb == verbTake {
			s.counts.refundsLost.Add(int64(len(group)))
		}
	}
}
