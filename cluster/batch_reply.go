package cluster

import (
	"errors"
	"fmt"

	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// errState is the error of an undecided call: the script replied numbers that are no state
// of the call's limits.
var errState = errors.New("decode reply: not a state of the limit")

// errClock is the error of an undecided call: the store's clock was twice outside the
// calendar boundaries that were sent.
var errClock = errors.New("decide call: the store's clock jumps")

// clockText is the script's reply for a call when the store's clock lies outside the
// calendar boundaries that were sent.
const clockText = "LGCLOCK"

// readReply reads the reply to a command and answers its calls. It returns an error if the
// connection fails or the reply is malformed: nothing more can be read then. A call that
// the store refused is answered by reporting a failure.
func (b *batch) readReply(c *command, in *resp.Reader, onFailure func(error, []limit.Item)) error {
	n, err := in.Array()
	if refused, ok := resp.AsError(err); ok {
		b.failCommand(c, refused, false, onFailure)
		return nil
	}
	if err != nil {
		return err
	}
	now, err := in.Integer()
	if err != nil {
		return err
	}
	n--
	b.replayed = false
	if c.once != nil && b.runs[c.first].op == opTake {
		again, err := in.Integer()
		if err != nil {
			return err
		}
		b.replayed = again == 1
		n--
	}
	for r := c.first; r >= 0; r = b.runs[r].next {
		for g := b.runs[r].first; g >= 0; g = b.coalesced[g].next {
			used, err := b.readCoalescedReply(&b.runs[r], &b.coalesced[g], now, n, in, onFailure)
			if err != nil {
				return err
			}
			n -= used
		}
	}
	if n != 0 {
		return fmt.Errorf("%w: %d elements too many", resp.ErrReply, n)
	}
	return nil
}

// readCoalescedReply reads the elements of a reply that belong to a coalesced call, and returns their
// number. left is the number of elements that remain in the reply.
func (b *batch) readCoalescedReply(r *callRun, g *coalescedCall, now int64, left int, in *resp.Reader, onFailure func(error, []limit.Item)) (used int, err error) {
	if left <= 0 {
		return 0, fmt.Errorf("%w: too few elements", resp.ErrReply)
	}
	first, err := in.Integer()
	if r.op > opPeek || err != nil && !errors.Is(err, resp.ErrNumber) {
		return b.readOutcome(r, g, first, err, now, onFailure)
	}
	used, impossible, err := b.readStates(g, first, err, now, left, in)
	if err != nil {
		return 0, err
	}
	if impossible != nil {
		b.fail(g, impossible, true, onFailure)
		return used, nil
	}
	b.grant(r.op, g, now)
	return used, nil
}

// readOutcome handles the only element for a coalesced call that was refunded, settled or refused: the
// number first, or err.
func (b *batch) readOutcome(r *callRun, g *coalescedCall, first int64, err error, now int64, onFailure func(error, []limit.Item)) (used int, _ error) {
	refused, ok := resp.AsError(err)
	switch {
	case ok && refused == clockText:
		b.inTime++
		b.eachCaller(g, func(nr *nodeRequest, call limit.Call) {
			if !nr.retryClock(call, now) && !nr.abandoned {
				onFailure(errClock, nr.items[call.First:call.Last])
			}
		})
	case ok && r.op == opSettle && b.readSettlementText(g, refused, onFailure):
	case ok:
		b.fail(g, refused, false, onFailure)
	case err != nil:
		return 0, err
	case r.op == opRefund:
		b.readRefund(g)
	case !b.readSettlement(g, first):
		return 0, resp.ErrReply
	}
	return 1, nil
}

// readStates reads the states of a coalesced call's buckets into b.states and returns the number of
// elements that it used. The first number has been read already, unless odd is the error in
// its place. impossible is the reason why the states cannot decide the call.
func (b *batch) readStates(g *coalescedCall, first int64, odd error, now int64, left int, in *resp.Reader) (used int, impossible, err error) {
	b.states, impossible = b.states[:0], odd
	for i := range g.items {
		p := &g.items[i].Limit.Params
		numbers := [6]int64{first}
		n := stateNumbers(p, first < 0 && len(g.items) == 1)
		if used += n; used > left {
			return 0, nil, fmt.Errorf("%w: too few elements", resp.ErrReply)
		}
		for j := range n {
			if i+j == 0 {
				continue // already read
			}
			numbers[j], err = in.Integer()
			if refused, ok := resp.AsError(err); ok {
				impossible = refused
			} else if err != nil {
				return 0, nil, err
			}
		}
		state := stateOf(p, &numbers, now)
		if impossible == nil && !isState(p, &state, now) {
			impossible = impossibleState(numbers, n, g.items[i].Limit.ID)
		}
		b.states = append(b.states, state)
	}
	return used, impossible, nil
}

// impossibleState returns the error of numbers that are no state. It receives them by value, so
// that only this error allocates memory.
func impossibleState(numbers [6]int64, n int, id string) error {
	return fmt.Errorf("%w: %v for %s", errState, numbers[:n], id)
}

// readRefund answers a refund.
func (b *batch) readRefund(g *coalescedCall) {
	b.inTime++
	late := false
	b.eachCaller(g, func(nr *nodeRequest, _ limit.Call) {
		nr.refunds++
		late = late || nr.abandoned
	})
	if late {
		b.returned(names(g.items))
	}
}

// stateNumbers returns the number of integers that the script replies for a bucket. atSight reports
// a negative number for the only bucket of a call, which fast_window.lua replies for a window.
func stateNumbers(p *bucket.Params, atSight bool) int {
	switch {
	case p.Algorithm == bucket.AlgorithmFixedWindow && atSight:
		return 1
	case p.Algorithm.ExpiresPerUnit():
		return 4
	case p.Algorithm != bucket.AlgorithmTokenBucket:
		return 6
	case p.HasLevel():
		return 1
	default:
		return 2
	}
}

func stateOf(p *bucket.Params, n *[6]int64, now int64) bucket.State {
	if p.Algorithm == bucket.AlgorithmFixedWindow && n[0] < 0 {
		start := now - now%p.Period
		return bucket.State{start, start + p.Period, -1 - n[0]}
	}
	switch stateNumbers(p, false) {
	case 6:
		return bucket.State(*n)
	case 4:
		return bucket.UnitLogState(n[0], n[1], n[2], n[3])
	case 1:
		return p.StateAtLevel(n[0], now)
	default:
		return p.StateWith(n[0], n[1], now)
	}
}

// maxNumber bounds the integers in a reply: up to there a double is exact.
const maxNumber = 1 << 53

// isState reports whether the script can have replied s at the time now. The maths could
// fail with anything else.
func isState(p *bucket.Params, s *bucket.State, now int64) bool {
	if now < 0 || now > maxNumber {
		return false
	}
	if p.Algorithm == bucket.AlgorithmTokenBucket {
		content, remainder := s[0], s[1]
		if content > p.Capacity || remainder < 0 || remainder >= p.Period {
			return false
		}
		return content >= -p.Capacity
	}
	for _, n := range s {
		if n < 0 || n > maxNumber {
			return false
		}
	}
	if p.Algorithm.ExpiresPerUnit() {
		return true
	}
	start, end := s[0], s[1]
	return start <= now && now < end
}

// grant gives the callers of a coalesced call their verdicts in order. The script has charged the
// buckets for all of them at once; package limit repeats that step by step on the states.
// Lease units are granted after all waiting callers.
func (b *batch) grant(what op, g *coalescedCall, now int64) {
	g.answered = true
	b.now = now
	b.leaseGranted = append(b.leaseGranted[:0], make([]int64, len(g.items))...)
	b.leaseCallers, b.heldVerdicts = b.leaseCallers[:0], b.heldVerdicts[:0]
	granted := false
	for at := g.first; at >= 0; at = b.callers[at].next {
		m := &b.callers[at]
		granted = b.check(what, g, now)
		if granted && m.leaseWanted > 0 {
			b.leaseCallers, b.heldVerdicts = append(b.leaseCallers, at), append(b.heldVerdicts, b.verdicts...)
			continue
		}
		b.deliver(what, g, m, b.verdicts)
	}
	if len(b.leaseCallers) > 0 {
		b.grantLeases(what, g, granted, now)
	}
}

// grantLeases gives the callers that wait for leased units their verdicts. granted reports whether
// the last check of the coalesced call was granted.
func (b *batch) grantLeases(what op, g *coalescedCall, granted bool, now int64) {
	for i, at := range b.leaseCallers {
		m, own := &b.callers[at], b.heldVerdicts[i*len(g.items):(i+1)*len(g.items)]
		clear(b.leaseGranted)
		if granted {
			b.grantLease(g, m.leaseWanted, now)
			own = b.verdicts
		}
		b.deliver(what, g, m, own)
	}
}

// deliver passes the verdicts to a caller of a coalesced call, unless it has left.
func (b *batch) deliver(what op, g *coalescedCall, m *caller, verdicts []bucket.Verdict) {
	nr, c := m.request, &m.call
	nr.mu.Lock()
	inTime := !nr.abandoned
	if inTime {
		b.setVerdicts(nr.items[c.First:c.Last], verdicts, c.RecordKey != nil)
	}
	last := nr.answered()
	nr.mu.Unlock()
	switch {
	case inTime:
		b.inTime++
	case what == opTake:
		b.setVerdicts(g.items, verdicts, c.RecordKey != nil)
		b.late(g.items, b.sentAt)
	}
	if last {
		b.notify(nr)
	}
}

// check decides one check of a coalesced call into b.verdicts, and reports whether it is granted.
func (b *batch) check(what op, g *coalescedCall, now int64) bool {
	granted := true
	b.verdicts = b.verdicts[:0]
	for i := range g.items {
		it := &g.items[i]
		state := b.states[i]
		verdict, _, _ := bucket.Decide(&it.Limit.Params, it.Bounds, &state, now, it.Cost)
		if what == opTake && verdict.Allowed {
			b.states[i] = state
		}
		granted = granted && (verdict.Allowed || !it.Enforced())
		b.verdicts = append(b.verdicts, verdict)
	}
	for i := range g.items {
		if what == opTake && !granted && b.verdicts[i].Allowed {
			bucket.Undo(&g.items[i].Limit.Params, &b.states[i], g.items[i].Cost)
		}
	}
	return granted
}

// grantLease grants up to wanted further checks after the last one was granted, and stores in
// b.leaseGranted how many each bucket granted: a bucket that is not enforced may grant
// fewer. The verdicts become those of the last check.
func (b *batch) grantLease(g *coalescedCall, wanted, now int64) {
	for i := range g.items {
		if it := &g.items[i]; it.Enforced() {
			wanted = min(wanted, b.verdicts[i].Remaining/it.Cost)
		}
	}
	for i := range g.items {
		it := &g.items[i]
		if n := min(wanted, b.verdicts[i].Remaining/it.Cost); n > 0 && b.verdicts[i].Allowed {
			b.leaseGranted[i] = n
			b.verdicts[i], _, _ = bucket.Decide(&it.Limit.Params, it.Bounds, &b.states[i], now, n*it.Cost)
		}
	}
}

// setVerdicts sets the verdicts of a call's items. kept reports whether the store records
// the answer.
func (b *batch) setVerdicts(items []limit.Item, verdicts []bucket.Verdict, kept bool) {
	for i := range items {
		it := &items[i]
		it.Verdict, it.Source, it.LeaseGranted = verdicts[i], limit.SourceStore, b.leaseGranted[i]
		it.Replayed, it.Recorded = b.replayed, kept
		if !it.Allowed {
			it.State, it.At = b.states[i], b.now
		}
	}
}

// eachCaller calls do for each caller of a coalesced call, holding the lock of its node request, and
// counts the call as answered.
func (b *batch) eachCaller(g *coalescedCall, do func(*nodeRequest, limit.Call)) {
	g.answered = true
	for at := g.first; at >= 0; at = b.callers[at].next {
		m := &b.callers[at]
		m.request.mu.Lock()
		do(m.request, m.call)
		last := m.request.answered()
		m.request.mu.Unlock()
		if last {
			b.notify(m.request)
		}
	}
}

// fail leaves the calls of a coalesced call undecided. sent reports whether the node may have
// executed them.
func (b *batch) fail(g *coalescedCall, why error, sent bool, onFailure func(error, []limit.Item)) {
	b.eachCaller(g, func(nr *nodeRequest, c limit.Call) {
		if nr.abandoned { // recordAbandoned counts the call
			return
		}
		if nr.retryRedirect(c, why) { // a redirect is no failure of the node
			b.inTime++
			return
		}
		onFailure(why, nr.items[c.First:c.Last])
		if sent && nr.op == opTake {
			nr.lost += c.Last - c.First
		}
	})
}

// failCommand leaves the unanswered calls of a command undecided.
func (b *batch) failCommand(c *command, why error, sent bool, onFailure func(error, []limit.Item)) {
	for r := c.first; r >= 0; r = b.runs[r].next {
		for g := b.runs[r].first; g >= 0; g = b.coalesced[g].next {
			if !b.coalesced[g].answered {
				b.fail(&b.coalesced[g], why, sent, onFailure)
			}
		}
	}
}
