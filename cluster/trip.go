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
			s.trouble(nil, errOverload, items[c.First:c.Last])
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
		for _, d := range t.again {
			t.items[d.call.First].Again = true
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
// returns when all have answered or the deadline has passed. It returns the number
// of refunds that were made.
func (s *Store) ask(deadline time.Time, v verb, items []limit.Item, calls []limit.Call) (done int) {
	if len(calls) == 0 {
		return 0
	}
	tr := trips.Get().(*trip)
	now := time.Now()
	tr.route(s, v, items, calls, now, deadline.Sub(now))
	again := s.await(tr, deadline, &done)
	return done + s.follow(deadline, v, items, again)
}

// await sends the tickets of a trip and waits for the answers. It returns the calls
// that are to be asked for again.
func (s *Store) await(tr *trip, deadline time.Time, done *int) (again []detour) {
	tr.timer.Reset(time.Until(deadline))
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
		for _, d := range t.again {
			s.redirected(d.why)
			again = append(again, d)
		}
		tr.spare = append(tr.spare, t)
	}
	tr.timer.Stop()
	tr.release()
	return again
}

// route puts each call on a ticket for its node. The decision has so much time
// left: after half of it nothing is sent any more.
func (tr *trip) route(s *Store, v verb, items []limit.Item, calls []limit.Call, now time.Time, left time.Duration) {
	top := s.top.Load()
	for _, c := range calls {
		if n := top.nodeOf(&items[c.First]); n != nil {
			tr.put(s, n, v, items, c, way{}, now, left)
		} else {
			s.trouble(nil, errNoNode, items[c.First:c.Last])
		}
	}
}

// put puts a call on a ticket for a node.
func (tr *trip) put(s *Store, n *node, v verb, items []limit.Item, c limit.Call, w way, now time.Time, left time.Duration) {
	t := tr.ticket(n, w)
	if t == nil {
		if !n.allow(v, now) {
			s.trouble(n, errBreaker, items[c.First:c.Last])
			return
		}
		t = tr.issue(n)
		t.reset(v, w, items, now.Add(left/2))
	}
	t.calls = append(t.calls, c)
}

// ticket returns the ticket for a node and a way that has room, or nil.
func (tr *trip) ticket(n *node, w way) *ticket {
	for i := len(tr.used) - 1; i >= 0; i-- {
		if tr.nodes[i] == n && tr.used[i].way == w {
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
		s.trouble(n, why, group)
		if t.sent && t.verb == verbTake {
			s.counts.refundsLost.Add(int64(len(group)))
		}
	}
}
