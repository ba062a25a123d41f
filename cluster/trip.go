package cluster

import (
	"sync"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// trip is what one caller asks of the whole store: a ticket for each node it
// needs, and one timer for all.
type trip struct {
	timer *time.Timer
	used  []*ticket
	nodes []*node // of used
	spare []*ticket
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
	tr.route(s, v, items, calls, now.Add(left/2))
	tr.timer.Reset(left)
	for i, t := range tr.used {
		tr.nodes[i].lane.submit(t)
	}
	late := false
	for i, t := range tr.used {
		if late && !t.leave() || !late && !t.wait(tr.timer.C) {
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
	clear(tr.nodes)
	clear(tr.used)
	tr.used, tr.nodes = tr.used[:0], tr.nodes[:0]
	trips.Put(tr)
	return again
}

// route puts each call on a ticket for its node.
func (tr *trip) route(s *Store, v verb, items []limit.Item, calls []limit.Call, sendBy time.Time) {
	top := s.top.Load()
	for _, c := range calls {
		n := top.single
		if n == nil {
			n = top.owner(items[c.First].Slot())
		}
		if n == nil {
			s.trouble(errNoNode, items[c.First:c.Last])
			continue
		}
		t := tr.ticket(n)
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
