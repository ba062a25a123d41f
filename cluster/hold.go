package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// settlement is a limit.Settlement on its way.
type settlement struct {
	*limit.Settlement
	keys    []string // that the script must declare, beside the record's
	outcome limit.Outcome
	back    []string // the names of buckets that changed
}

// undeclaredText begins what the script replies when it must declare keys, and doneText
// when buckets changed.
const (
	undeclaredText = "LGKEYS "
	doneText       = "LGDONE "
)

// errUndeclared is why nothing was settled although the keys were declared: the record
// has become another one.
var errUndeclared = fmt.Errorf("%w: other keys than before", errReply)

// encodeHold writes for how long the answer of a call is kept and, if it is held, how:
// see decide.lua. It returns how many arguments that are.
func (f *flight) encodeHold(c *command, r *run) int {
	f.body = appendNumber(f.body, c.keep.Milliseconds())
	if c.hold == limit.HoldNone {
		return 1
	}
	follows := make([]byte, len(r.shape))
	for i := range r.shape {
		follows[i] = '0'
		if r.shape[i].Limit.FixedCost == 0 && c.hold == limit.HoldReservation {
			follows[i] = '1'
		}
	}
	f.body = appendBulk(f.body, follows)
	return 2
}

// encodeSettlement writes the command of a settlement.
func (f *flight) encodeSettlement(c *command, sha string) {
	s := c.settlement
	const args = 6
	f.encodeCall(c, sha, 1+len(s.keys), 1+len(s.keys)+args)
	f.out = appendBulk(f.out, c.once)
	for _, key := range s.keys {
		f.out = appendBulk(f.out, key)
	}
	free := int64(0)
	if c.free {
		free = 1
	}
	f.out = appendBulk(f.out, s.Change.String())
	for _, n := range [...]int64{0, 1, s.Units, s.For.Milliseconds(), free} {
		f.out = appendNumber(f.out, n)
	}
}

// settled notes what the script replied to a settlement, and reports whether that is
// an answer to it.
func (f *flight) settled(g *group, outcome int64) (ok bool) {
	if outcome < 0 || outcome > int64(limit.OutcomeAlready) {
		return false
	}
	f.inTime++
	f.each(g, func(t *ticket, _ limit.Call) {
		if !t.left {
			t.settlement.outcome = limit.Outcome(outcome)
		}
	})
	return true
}

// settledText notes what the script replied in words, and reports whether it did.
func (f *flight) settledText(g *group, text replyError, tell func(error, []limit.Item)) bool {
	back, done := strings.CutPrefix(string(text), doneText)
	names, late := strings.Split(back, "\n"), false
	if !done && !strings.HasPrefix(string(text), undeclaredText) {
		return false
	}
	f.inTime++
	f.each(g, func(t *ticket, call limit.Call) {
		switch {
		case t.left:
			late = done
		case done:
			t.settlement.outcome, t.settlement.back = limit.OutcomeDone, names
		case !t.askWithKeys(call, text):
			tell(errUndeclared, t.items[call.First:call.Last])
		}
	})
	if late {
		f.returned(names)
	}
	return true
}

// askWithKeys notes that a settlement is to be asked for again with the keys that the
// script named, and reports whether that can help. It is called under t.mu.
func (t *ticket) askWithKeys(c limit.Call, text replyError) bool {
	if len(t.settlement.keys) > 0 {
		return false
	}
	t.settlement.keys = strings.Split(strings.TrimPrefix(string(text), undeclaredText), "\n")
	t.again = append(t.again, detour{c, t.way, errUndeclared})
	return true
}

// Settle changes what the store keeps of a request, see limiter.Store.
func (s *Store) Settle(at limit.Moment, what *limit.Settlement) (outcome limit.Outcome, back []string) {
	key := what.Key()
	items := []limit.Item{{Name: key, KeyLen: len(key), TagLen: len(limit.TenantKey(what.Tenant))}}
	st := &settlement{Settlement: what}
	d := detour{call: limit.Call{Last: 1, Once: key}, why: errNoNode}
	for again := []detour{d}; len(again) > 0; {
		tr := trips.Get().(*trip)
		now := time.Now()
		tr.detour(s, verbSettle, items, again[0], now, at.Deadline().Sub(now))
		for _, t := range tr.used {
			t.settlement = st
		}
		none := 0
		again = s.await(tr, at.Deadline(), &none)
	}
	return st.outcome, st.back
}
