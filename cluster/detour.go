package cluster

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// While a slot moves, calls about it are answered with a redirect. Most are left to
// the backstop. Calls with a bucket of a limit that fails closed, refunds and settlements
// follow it, one of each kind, and a second one where a slot has moved on meanwhile: moving
// slots is everyday work, and must not deny everybody. A redirect says that nothing was
// executed, so asking again charges nobody twice. See
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/ on
// MOVED, ASK and TRYAGAIN.

// way is how a call travels. The zero way is that of most calls: to the owner of its
// slot, put together with others. From it a call may only go on to ways that are
// longer, so that it comes to an end.
type way struct {
	// alone: in a command of its own that declares its keys. Without that a store
	// does not say where a key lives instead.
	alone bool
	// single: the call has one key, split off from a call with several; without alone
	// that is still to be done.
	single bool
	// to is the address that a redirect named, "" for the owner of the slot as far as
	// it is known: moved counts how often it was another one, and asking says that the
	// slot is only on its way there.
	to     string
	moved  uint8
	asking bool
	// clock: the store's clock was outside of the boundaries that were sent before.
	clock bool
}

// maxMoved is how often a call follows a slot that has moved.
const maxMoved = 2

// detour is a call that was not decided, why, and how it is asked for again.
type detour struct {
	call limit.Call
	way  way
	why  error
}

// after returns the way that is left to a call which came by w and was answered
// with an error, if there is one.
func (w way) after(why error) (way, bool) {
	kind := kindOf(why)
	to, told := redirect(why)
	switch {
	case kind == KindTryAgain && !w.single: // the keys of the call are in two places
		return way{single: true, clock: w.clock}, true
	case kind == KindMoved && told:
		ok := w.moved < maxMoved && !w.asking
		w.alone, w.to, w.moved = true, to, w.moved+1
		return w, ok
	case kind == KindAsk && told:
		ok := !w.asking
		w.alone, w.to, w.asking = true, to, true
		return w, ok
	case kind == KindMoved: // in a script, which does not say where to
		ok := !w.alone
		w.alone = true
		return w, ok
	default:
		return way{}, false
	}
}

// redirect returns the address in a redirect, if there is one in the error.
func redirect(why error) (addr string, ok bool) {
	reply, _ := refusal(why)
	words := strings.Fields(string(reply))
	if len(words) != 3 {
		return "", false // the sentence of a script
	}
	_, _, err := net.SplitHostPort(words[2])
	return words[2], err == nil
}

// follows reports whether a call goes on to where a redirect leads.
func follows(v verb, call []limit.Item) bool {
	return v == verbRefund || v == verbSettle || slices.ContainsFunc(call, func(it limit.Item) bool {
		return it.Enforced() && it.Limit.OnError == limit.OnErrorClosed
	})
}

// redirected notes that a call is to be asked for elsewhere, if there is a way, and
// reports whether it did. It is called under t.mu.
func (t *ticket) redirected(c limit.Call, why error) bool {
	if k := kindOf(why); t.verb == verbTake && c.Once != nil && c.Hold != limit.HoldSlot && !t.left && (k == KindMoved || k == KindAsk || k == KindTryAgain) {
		// The key of its answer is hardly ever there, which a slot that moves does not
		// bear: it is asked for without.
		c.Once = nil
		t.again = append(t.again, detour{c, t.way, why})
		return true
	}
	if t.left || !t.way.alone && !follows(t.verb, t.items[c.First:c.Last]) {
		return false // the parts of a call that follows do, too
	}
	w, ok := t.way.after(why)
	if w.single && c.Once != nil {
		ok = false // the record of a call, and its buckets, are not taken apart
	}
	if ok {
		t.again = append(t.again, detour{c, w, why})
	}
	return ok
}

// askAgain notes that a call was not decided because the store's clock, now, is
// outside its boundaries, and reports whether it is worth another try. It is called
// under t.mu.
func (t *ticket) askAgain(c limit.Call, now int64) bool {
	if t.left || t.way.clock {
		return false
	}
	items := t.items[c.First:c.Last]
	for i := range items {
		items[i].Bounds = items[i].Limit.Bounds(now)
	}
	w := t.way
	w.clock = true
	t.again = append(t.again, detour{c, w, errJump})
	return true
}

// follow asks for calls again, in the ways that are left to them, until each is
// decided or has no way left. It returns the number of refunds that were made.
func (s *Store) follow(deadline time.Time, v verb, items []limit.Item, again []detour) (done int) {
	var splits []limit.Call
	for len(again) > 0 {
		tr := trips.Get().(*trip)
		now := time.Now()
		for _, d := range again {
			if !d.way.single || d.way.alone {
				tr.detour(s, v, items, d, now, deadline.Sub(now))
				continue
			}
			splits = append(splits, d.call)
			for _, part := range parts(items, d.call) {
				tr.detour(s, v, items, detour{part, way{alone: true, single: true}, d.why}, now, deadline.Sub(now))
			}
		}
		again = s.await(tr, deadline, &done)
	}
	for _, c := range splits {
		s.unite(deadline, v, items, c)
	}
	return done
}

// detour puts a call on a ticket for the node that its way leads to.
func (tr *trip) detour(s *Store, v verb, items []limit.Item, d detour, now time.Time, left time.Duration) {
	top := s.top.Load()
	n := top.nodeOf(&items[d.call.First])
	if d.way.to != "" {
		d.way.to = fullAddr(d.way.to, n)
		n = top.nodes[d.way.to]
	}
	if d.way.to != "" && (n == nil || top.met[d.way.to]) {
		s.meet(d.way.to) // or again: it is still in use
	}
	if n != nil {
		tr.put(s, n, v, items, d.call, d.way, now, left)
		return
	}
	s.trouble(nil, d.why, items[d.call.First:d.call.Last])
}

// parts returns the parts of a call that have one key each: the keys are in two places.
func parts(items []limit.Item, c limit.Call) []limit.Call {
	var all []limit.Call
	for at := c.First; at < c.Last; {
		end := at + 1
		for end < c.Last && string(items[end].Name[:items[end].KeyLen]) == string(items[at].Name[:items[at].KeyLen]) {
			end++
		}
		all = append(all, limit.Call{First: at, Last: end})
		at = end
	}
	return all
}

// unite makes one decision of those about the parts of a call, all or nothing: units
// that were granted go back where another part denies, or is undecided.
func (s *Store) unite(deadline time.Time, v verb, items []limit.Item, c limit.Call) {
	undecided, denied := false, false
	var granted []limit.Item
	for _, p := range parts(items, c) {
		part := items[p.First:p.Last]
		undecided = undecided || part[0].Source == limit.SourceNone
		denies := slices.ContainsFunc(part, func(it limit.Item) bool { return it.Denies() && it.Enforced() })
		denied = denied || denies
		for i := range part {
			if part[i].Allowed && !denies {
				granted = append(granted, part[i])
			}
		}
	}
	if v == verbTake && (undecided || denied) && len(granted) > 0 {
		s.refundBy(deadline, granted)
		s.opts.Returned(names(granted))
	}
	if undecided {
		for i := range items[c.First:c.Last] {
			it := &items[c.First+i]
			it.Verdict, it.Source, it.More, it.Repeated, it.Kept = limit.Verdict{}, limit.SourceNone, 0, false, false
		}
	}
}
