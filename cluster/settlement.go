package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
)

// settlement is a limit.Settlement in progress.
type settlement struct {
	*limit.Settlement
	keys    []string // keys that the script must declare, beside the record's
	outcome limit.Outcome
	back    []string // the names of buckets that changed
}

// undeclaredText is the prefix of the script's reply when it must declare keys, doneText
// when buckets changed.
const (
	undeclaredText = "LGKEYS "
	doneText       = "LGDONE "
)

// errUndeclared is the error of a settlement that was not applied although its keys were
// declared: the record has been replaced by another one.
var errUndeclared = fmt.Errorf("%w: other keys than before", resp.ErrReply)

// encodeHold writes the record TTL of a call and, for a reservation or slot, how the record
// is held: see main.lua. It returns the number of arguments.
func (b *batch) encodeHold(c *command, r *callRun) int {
	b.body = resp.AppendNumber(b.body, c.keep.Milliseconds())
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
	b.body = resp.AppendBulk(b.body, follows)
	return 2
}

// encodeSettlement writes the command of a settlement.
func (b *batch) encodeSettlement(c *command, sha string) {
	s := c.settlement
	const args = 6
	b.encodeCall(c, sha, 1+len(s.keys), 1+len(s.keys)+args)
	b.out = resp.AppendBulk(b.out, c.once)
	for _, key := range s.keys {
		b.out = resp.AppendBulk(b.out, key)
	}
	free := int64(0)
	if c.free {
		free = 1
	}
	b.out = resp.AppendBulk(b.out, s.Change.String())
	for _, n := range [...]int64{0, 1, s.Units, s.For.Milliseconds(), free} {
		b.out = resp.AppendNumber(b.out, n)
	}
}

// readSettlement stores the script's integer reply to a settlement, and reports whether it
// is a valid outcome.
func (b *batch) readSettlement(g *coalescedCall, outcome int64) (ok bool) {
	if outcome < 0 || outcome > int64(limit.OutcomeAlready) {
		return false
	}
	b.inTime++
	b.eachCaller(g, func(nr *nodeRequest, _ limit.Call) {
		if !nr.abandoned {
			nr.settlement.outcome = limit.Outcome(outcome)
		}
	})
	return true
}

// readSettlementText stores the script's text reply to a settlement, and reports whether it
// is one.
func (b *batch) readSettlementText(g *coalescedCall, text resp.Error, onFailure func(error, []limit.Item)) bool {
	back, done := strings.CutPrefix(string(text), doneText)
	names, late := strings.Split(back, "\n"), false
	if !done && !strings.HasPrefix(string(text), undeclaredText) {
		return false
	}
	b.inTime++
	b.eachCaller(g, func(nr *nodeRequest, call limit.Call) {
		switch {
		case nr.abandoned:
			late = done
		case done:
			nr.settlement.outcome, nr.settlement.back = limit.OutcomeDone, names
		case !nr.retryWithKeys(call, text):
			onFailure(errUndeclared, nr.items[call.First:call.Last])
		}
	})
	if late {
		b.returned(names)
	}
	return true
}

// retryWithKeys adds a settlement to the retries with the keys that the script replied. It
// reports false if keys were declared before. The caller holds nr.mu.
func (nr *nodeRequest) retryWithKeys(c limit.Call, text resp.Error) bool {
	if len(nr.settlement.keys) > 0 {
		return false
	}
	nr.settlement.keys = strings.Split(strings.TrimPrefix(string(text), undeclaredText), "\n")
	nr.retries = append(nr.retries, retry{c, nr.route, errUndeclared})
	return true
}

// Settle changes what the store has recorded of a request, see limiter.Store.
func (s *Store) Settle(at limit.DecisionTime, what *limit.Settlement) (outcome limit.Outcome, back []string) {
	key := what.Key()
	items := []limit.Item{{Name: key, KeyLen: len(key), TagLen: len(limit.TenantKey(what.Tenant))}}
	st := &settlement{Settlement: what}
	d := retry{call: limit.Call{Last: 1, RecordKey: key}, err: errNoNode}
	for again := []retry{d}; len(again) > 0; {
		req := requests.Get().(*request)
		now := time.Now()
		req.addRetry(s, opSettle, items, again[0], now, at.Deadline().Sub(now))
		for _, nr := range req.used {
			nr.settlement = st
		}
		none := 0
		again = s.await(req, at.Deadline(), &none)
	}
	return st.outcome, st.back
}
