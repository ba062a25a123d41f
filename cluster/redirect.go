package cluster

import (
	"net"
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// While a hash slot moves, calls on it are answered with a redirect. Most of them are left
// to the backstop. Calls with a bucket of a limit that fails closed, refunds and
// settlements follow the redirect: one of each kind, and a second one if the slot has moved
// again meanwhile. Moving slots is everyday work and must not deny every request. A
// redirected call was not executed, so a retry charges nothing twice. See
// https://redis.io/docs/latest/operate/oss_and_stack/reference/cluster-spec/ on MOVED, ASK
// and TRYAGAIN.

// route is how a call reaches its node. The zero route is that of most calls: to the owner
// of its hash slot, batched with others. Each redirect leads to a longer route, so that a
// call is retried only a bounded number of times.
type route struct {
	// declared: the call has a command of its own that declares its keys. Without declared
	// keys the error of a store does not contain the address of a key's node.
	declared bool
	// splitKey: the call has one key, split off from a call with several. A call without it
	// can still be split.
	splitKey bool
	// to is the address from a redirect, or "" for the known owner of the slot. moved
	// counts the MOVED redirects that were followed. asking means that the slot is still
	// moving to the address.
	to     string
	moved  uint8
	asking bool
	// clockRetry: the store's clock was outside the boundaries of an earlier attempt.
	clockRetry bool
}

// maxMoved is the maximum number of MOVED redirects that a call follows.
const maxMoved = 2

// retry is an undecided call, the reason, and the route of the next attempt.
type retry struct {
	call  limit.Call
	route route
	err   error
}

// next returns the route of the next attempt for a call that was sent by via and answered
// with an error. It reports false if there is none.
func (via route) next(why error) (route, bool) {
	kind := kindOf(why)
	to, named := redirect(why)
	switch {
	case kind == KindTryAgain && !via.splitKey: // the keys of the call are on two nodes
		return route{splitKey: true, clockRetry: via.clockRetry}, true
	case kind == KindMoved && named:
		ok := via.moved < maxMoved && !via.asking
		via.declared, via.to, via.moved = true, to, via.moved+1
		return via, ok
	case kind == KindAsk && named:
		ok := !via.asking
		via.declared, via.to, via.asking = true, to, true
		return via, ok
	case kind == KindMoved: // from inside a script: without an address
		ok := !via.declared
		via.declared = true
		return via, ok
	default:
		return route{}, false
	}
}

// redirect returns the address in an error, if it is a redirect.
func redirect(why error) (addr string, ok bool) {
	reply, _ := resp.AsError(why)
	words := strings.Fields(string(reply))
	if len(words) != 3 {
		return "", false // a sentence from inside a script
	}
	_, _, err := net.SplitHostPort(words[2])
	return words[2], err == nil
}

// followsRedirects reports whether a call follows redirects.
func followsRedirects(what op, call []limit.Item) bool {
	return what == opRefund || what == opSettle || slices.ContainsFunc(call, func(it limit.Item) bool {
		return it.Enforced() && it.Limit.OnError == limit.OnErrorClosed
	})
}

// retryRedirect adds a redirected call to the retries if it has a route left, and reports
// whether it did. The caller holds nr.mu.
func (nr *nodeRequest) retryRedirect(c limit.Call, why error) bool {
	if k := kindOf(why); nr.op == opTake && c.RecordKey != nil && c.Hold != limit.HoldSlot && !nr.abandoned && (k == KindMoved || k == KindAsk || k == KindTryAgain) {
		// A multi-key command on a moving slot fails if a key is missing, and the record
		// hardly ever exists: the retry has no record key.
		c.RecordKey = nil
		nr.retries = append(nr.retries, retry{c, nr.route, why})
		return true
	}
	if nr.abandoned || !nr.route.declared && !followsRedirects(nr.op, nr.items[c.First:c.Last]) {
		return false // the parts of a call that follows redirects follow them, too
	}
	via, ok := nr.route.next(why)
	if via.splitKey && c.RecordKey != nil {
		ok = false // the record of a call and its buckets cannot be split
	}
	if ok {
		nr.retries = append(nr.retries, retry{c, via, why})
	}
	return ok
}

// retryClock adds a call to the retries that was not decided because the store's clock,
// now, is outside its boundaries. It reports false if the call was retried for that before.
// The caller holds nr.mu.
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

// retryAll retries calls until each is decided or has no route left. It returns the number
// of refunds that were made.
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

// addRetry adds a call to a node request for the node of its route.
func (req *request) addRetry(s *Store, what op, items []limit.Item, d retry, now time.Time, left time.Duration) {
	top := s.top.Load()
	n := top.nodeOf(&items[d.call.First])
	if d.route.to != "" {
		d.route.to = fullAddr(d.route.to, n)
		n = top.nodes[d.route.to]
	}
	if d.route.to != "" && (n == nil || top.discovered[d.route.to]) {
		s.noteDiscovered(d.route.to) // also renews a known one that is in use
	}
	if n != nil {
		req.addCall(s, n, what, items, d.call, d.route, what.isAlone(d.call), now, left)
		return
	}
	s.recordFailure(nil, d.err, items[d.call.First:d.call.Last])
}

// parts splits a call whose keys are on two nodes into calls that have one key each.
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

// mergeParts merges the decisions on the parts of a call into one, all or nothing: units
// that were granted are refunded if another part denies or is undecided.
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
			it.Verdict, it.Source, it.LeaseGranted, it.Replayed, it.Recorded = bucket.Verdict{}, limit.SourceNone, 0, false, false
		}
	}
}
