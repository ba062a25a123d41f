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

// route is how a call travels. The zero route is that of most calls: to the owner of its
// slot, put together with others. From it a call may only go on to ways that are
// longer, so that it comes to an end.
type route struct {
	// declared: in a command of its own that declares its keys. Without that a store
	// does not say where a key lives instead.
	declared bool
	// splitKey: the call has one key, split off from a call with several; without alone
	// that is still to be done.
	splitKey bool
	// to is the address that a redirect named, "" for the owner of the slot as far as
	// it is known: moved counts how often it was another one, and asking says that the
	// slot is only on its way there.
	to     string
	moved  uint8
	asking bool
	// clockRetry: the store's clockRetry was outside of the boundaries that were sent before.
	clockRetry bool
}

// maxMoved is how often a call follows a slot that has moved.
const maxMoved = 2

// retry is a call that was not decided, why, and how it is asked for again.
type retry struct {
	call  limit.Call
	route route
	err   error
}

// next returns the way that is left to a call which came by w and was answered
// with an error, if there is one.
func (via route) next(why error) (route, bool) {
	kind := kindOf(why)
	to, told := redirect(why)
	switch {
	case kind == KindTryAgain && !via.splitKey: // the keys of the call are in two places
		return route{splitKey: true, clockRetry: via.clockRetry}, true
	case kind == KindMoved && told:
		ok := via.moved < maxMoved && !via.asking
		via.declared, via.to, via.moved = true, to, via.moved+1
		return via, ok
	case kind == KindAsk && told:
		ok := !via.asking
		via.declared, via.to, via.asking = true, to, true
		return via, ok
	case kind == KindMoved: // in a script, which does not say where to
		ok := !via.declared
		via.declared = true
		return via, ok
	default:
		return route{}, false
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

// followsRedirects reports whether a call goes on to where a redirect leads.
func followsRedirects(what op, call []limit.Item) bool {
	return what == opRefund || what == opSettle || slices.ContainsFunc(call, func(it limit.Item) bool {
		return it.Enforced() && it.Limit.OnError == limit.OnErrorClosed
	})
}

// retryRedirect notes that a call is to be asked for elsewhere, if there is a way, and
// reports whether it did. It is called under t.mu.
func (nr *nodeRequest) retryRedirect(c limit.Call, why error) bool {
	if k := kindOf(why); nr.op == opTake && c.RecordKey != nil && c.Hold != limit.HoldSlot && !nr.abandoned && (k == KindMoved || k == KindAsk || k == KindTryAgain) {
		// The key of its answer is hardly ever there, which a slot that moves does not
		// bear: it is asked for without.
		c.RecordKey = nil
		nr.retries = append(nr.retries, retry{c, nr.route, why})
		return true
	}
	if nr.abandoned || !nr.route.declared && !followsRedirects(nr.op, nr.items[c.First:c.Last]) {
		return false // the parts of a call that follows do, too
	}
	via, ok := nr.route.next(why)
	if via.splitKey && c.RecordKey != nil {
		ok = false // the record of a call, and its buckets, are not taken apart
	}
	if ok {
		nr.retries = append(nr.retries, retry{c, via, why})
	}
	return ok
}

// retryClock notes that a call was not decided because the store's clock, now, is
// outside its boundaries, and reports whether it is worth another try. It is called
// under t.mu.
func (nr *nodeRequest) retryClock(c limit.Call, now int64) bool {
	if nr.abandoned || nr.route.clockRetry {
		return false
	}
	items := nr.items[c.First:c.Last]
	for i := range items {
		items[i].Bounds = items[i].Limit.Bounds(now)
	}
	via := nr.route
	via.clockRetry = true
	nr.retries = append(nr.retries, retry{c, via, errClock})
	return true
}

// retryAll asks for calls again, in the ways that are left to them, until each is
// decided or has no way left. It returns the number of refunds that were made.
func (s *Store) retryAll(deadline time.Time, what op, items []limit.Item, again []retry) (done int) {
	var splits []limit.Call
	for len(again) > 0 {
		req := requests.Get().(*request)
		now := time.Now()
		for _, d := range again {
			if !d.route.splitKey || d.route.declared {
				req.addRetry(s, what, items, d, now, deadline.Sub(now))
				continue
			}
			splits = append(splits, d.call)
			for _, part := range parts(items, d.call) {
				req.addRetry(s, what, items, retry{part, route{declared: true, splitKey: true}, d.err}, now, deadline.Sub(now))
			}
		}
		again = s.await(req, deadline, &done)
	}
	for _, c := range splits {
		s.mergeParts(deadline, what, items, c)
	}
	return done
}

// addRetry puts a call on a ticket for the node that its way leads to.
func (req *request) addRetry(s *Store, what op, items []limit.Item, d retry, now time.Time, left time.Duration) {
	top := s.top.Load()
	n := top.nodeOf(&items[d.call.First])
	if d.route.to != "" {
		d.route.to = fullAddr(d.route.to, n)
		n = top.nodes[d.route.to]
	}
	if d.route.to != "" && (n == nil || top.discovered[d.route.to]) {
		s.noteDiscovered(d.route.to) // or again: it is still in use
	}
	if n != nil {
		req.addCall(s, n, what, items, d.call, d.route, now, left)
		return
	}
	s.recordFailure(nil, d.err, items[d.call.First:d.call.Last])
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

// mergeParts makes one decision of those about the parts of a call, all or nothing: units
// that were granted go back where another part denies, or is undecided.
func (s *Store) mergeParts(deadline time.Time, what op, items []limit.Item, c limit.Call) {
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
	if what == opTake && (undecided || denied) && len(granted) > 0 {
		s.refundBy(deadline, granted)
		s.opts.Returned(names(granted))
	}
	if undecided {
		for i := range items[c.First:c.Last] {
			it := &items[c.First+i]
			it.Verdict, it.Source, it.LeaseGranted, it.Replayed, it.Recorded = limit.Verdict{}, limit.SourceNone, 0, false, false
		}
	}
}
