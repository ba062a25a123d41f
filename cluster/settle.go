package cluster

import (
	"errors"
	"fmt"

	"github.com/limitgate/limitgate/limit"
)

// errReply is returned for a reply that no script of ours makes.
var errReply = errors.New("decode reply: not what the script replies")

// errState is why a call stayed undecided for which the script replied what no bucket of
// its limits can be.
var errState = errors.New("decode reply: no state of the limit")

// errJump is why a call stayed undecided whose clock was outside the calendar
// boundaries twice.
var errJump = errors.New("decide call: the store's clock jumps")

// clockText is what the script replies for a call when its clock lies outside
// the calendar boundaries that were sent.
const clockText = "LGCLOCK"

// replyError is an error that the store replied.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks the error as one that go-redis would return.
func (replyError) RedisError() {}

// refusal returns the error that the store replied, if it did.
func refusal(err error) (replyError, bool) {
	if err == nil {
		return "", false // most often: the variable below would be allocated
	}
	var refused replyError
	ok := errors.As(err, &refused)
	return refused, ok
}

// settle reads the reply to a command and answers its calls. An error is one of
// the connection, or of a reply that makes no sense: then nothing more can be
// read. A call that the store refused is answered, with trouble.
func (f *flight) settle(c *command, in *replies, tell func(error, []limit.Item)) error {
	n, err := in.array()
	if refused, ok := refusal(err); ok {
		f.failCommand(c, refused, false, tell)
		return nil
	}
	if err != nil {
		return err
	}
	now, err := in.integer()
	if err != nil {
		return err
	}
	n--
	f.repeated = false
	if c.once != nil && f.runs[c.first].verb == verbTake {
		again, err := in.integer()
		if err != nil {
			return err
		}
		f.repeated = again == 1
		n--
	}
	for r := c.first; r >= 0; r = f.runs[r].next {
		for g := f.runs[r].first; g >= 0; g = f.groups[g].next {
			used, err := f.settleGroup(&f.runs[r], &f.groups[g], now, n, in, tell)
			if err != nil {
				return err
			}
			n -= used
		}
	}
	if n != 0 {
		return fmt.Errorf("%w: %d elements too many", errReply, n)
	}
	return nil
}

// settleGroup reads the part of a reply that is about a group, of which left elements are
// there, and returns how many elements that was.
func (f *flight) settleGroup(r *run, g *group, now int64, left int, in *replies, tell func(error, []limit.Item)) (used int, err error) {
	if left <= 0 {
		return 0, fmt.Errorf("%w: too few elements", errReply)
	}
	first, err := in.integer()
	refused, ok := refusal(err)
	switch {
	case ok && refused == clockText:
		f.inTime++
		f.each(g, func(t *ticket, call limit.Call) {
			if !t.askAgain(call, now) && !t.left {
				tell(errJump, t.items[call.First:call.Last])
			}
		})
		return 1, nil
	case ok && r.verb == verbSettle && f.settledText(g, refused, tell):
		return 1, nil
	case ok && (refused != errNumber || r.verb > verbPeek):
		f.fail(g, refused, false, tell)
		return 1, nil
	case err != nil && !ok:
		return 0, err
	case r.verb == verbRefund:
		f.refunded(g)
		return 1, nil
	case r.verb == verbSettle:
		if !f.settled(g, first) {
			return 0, errReply
		}
		return 1, nil
	}
	used, impossible, err := f.readStates(g, first, err, now, left, in)
	if err != nil {
		return 0, err
	}
	if impossible != nil {
		f.fail(g, impossible, true, tell)
		return used, nil
	}
	f.grant(r.verb, g, now)
	return used, nil
}

// readStates reads the states of a group's buckets into f.states, the first number of which
// is there unless odd is the error in its place, and returns how many elements they took.
// Impossible is why the call cannot be decided by them.
func (f *flight) readStates(g *group, first int64, odd error, now int64, left int, in *replies) (used int, impossible, err error) {
	f.states, impossible = f.states[:0], odd
	for i := range g.items {
		p := &g.items[i].Limit.Params
		numbers := [6]int64{first}
		n := stateNumbers(p)
		if used += n; used > left {
			return 0, nil, fmt.Errorf("%w: too few elements", errReply)
		}
		for j := range n {
			if i+j == 0 {
				continue // it is there
			}
			numbers[j], err = in.integer()
			if refused, ok := refusal(err); ok {
				impossible = refused
			} else if err != nil {
				return 0, nil, err
			}
		}
		state := stateOf(p, &numbers, now)
		if impossible == nil && !isState(p, &state, now) {
			impossible = fmt.Errorf("%w: %v is none of %s", errState, numbers[:n], g.items[i].Limit.ID)
		}
		f.states = append(f.states, state)
	}
	return used, impossible, nil
}

// refunded answers a refund.
func (f *flight) refunded(g *group) {
	f.inTime++
	late := false
	f.each(g, func(t *ticket, _ limit.Call) {
		t.refunds++
		late = late || t.left
	})
	if late {
		f.returned(names(g.items))
	}
}

// stateNumbers returns how many numbers the script replies for a bucket.
func stateNumbers(p *limit.Params) int {
	switch {
	case p.Algorithm.OneByOne():
		return 4
	case p.Algorithm != limit.AlgorithmTokenBucket:
		return 6
	case p.HasLevel():
		return 1
	default:
		return 2
	}
}

func stateOf(p *limit.Params, n *[6]int64, now int64) limit.State {
	switch stateNumbers(p) {
	case 6:
		return limit.State(*n)
	case 4:
		return limit.UnitsState(n[0], n[1], n[2], n[3])
	case 1:
		return p.StateAtLevel(n[0], now)
	default:
		return p.StateWith(n[0], n[1], now)
	}
}

// maxNumber bounds what the script replies: its numbers are exact up to there.
const maxNumber = 1 << 53

// isState reports whether the script can have replied a state for now. With
// anything else the maths could fail.
func isState(p *limit.Params, s *limit.State, now int64) bool {
	if now < 0 || now > maxNumber {
		return false
	}
	if p.Algorithm == limit.AlgorithmTokenBucket {
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
	if p.Algorithm.OneByOne() {
		return true
	}
	start, end := s[0], s[1]
	return start <= now && now < end
}

// grant gives the members of a group their verdicts, one after the other: what
// the script did to the buckets at once, the maths of package limit does to
// their states step by step. Wishes come behind all of them: what somebody waits
// for is not kept for later.
func (f *flight) grant(v verb, g *group, now int64) {
	g.answered = true
	f.now = now
	f.more = append(f.more[:0], make([]int64, len(g.items))...)
	f.wishers, f.held = f.wishers[:0], f.held[:0]
	granted := false
	for at := g.first; at >= 0; at = f.members[at].next {
		m := &f.members[at]
		granted = f.check(v, g, now)
		if granted && m.wish > 0 {
			f.wishers, f.held = append(f.wishers, at), append(f.held, f.verdicts...)
			continue
		}
		f.decided(v, g, m, f.verdicts)
	}
	for i, at := range f.wishers {
		m, own := &f.members[at], f.held[i*len(g.items):(i+1)*len(g.items)]
		clear(f.more)
		if granted {
			f.checkMore(g, m.wish, now)
			own = f.verdicts
		}
		f.decided(v, g, m, own)
	}
}

// decided hands a member of a group its verdicts.
func (f *flight) decided(v verb, g *group, m *member, verdicts []limit.Verdict) {
	last, inTime := f.hand(m, verdicts)
	switch {
	case inTime:
		f.inTime++
	case v == verbTake:
		f.decideItems(g.items, verdicts, m.call.Once != nil)
		f.late(g.items, f.sentAt)
	}
	if last {
		f.finish(m.ticket)
	}
}

// check decides one check of a group into f.verdicts, and reports whether it is
// granted.
func (f *flight) check(v verb, g *group, now int64) bool {
	granted := true
	f.verdicts = f.verdicts[:0]
	for i := range g.items {
		it := &g.items[i]
		state := f.states[i]
		verdict, _, _ := limit.Decide(&it.Limit.Params, it.Bounds, &state, now, it.Cost)
		if v == verbTake && verdict.Allowed {
			f.states[i] = state
		}
		granted = granted && (verdict.Allowed || !it.Enforced())
		f.verdicts = append(f.verdicts, verdict)
	}
	for i := range g.items {
		if v == verbTake && !granted && f.verdicts[i].Allowed {
			limit.Untake(&g.items[i].Limit.Params, &f.states[i], g.items[i].Cost)
		}
	}
	return granted
}

// checkMore grants up to wish more checks after the last one was granted, and notes in
// f.more how many each bucket gave: one that only watches may give fewer. The
// verdicts become those of the last.
func (f *flight) checkMore(g *group, wish, now int64) {
	for i := range g.items {
		if it := &g.items[i]; it.Enforced() {
			wish = min(wish, f.verdicts[i].Remaining/it.Cost)
		}
	}
	for i := range g.items {
		it := &g.items[i]
		if n := min(wish, f.verdicts[i].Remaining/it.Cost); n > 0 && f.verdicts[i].Allowed {
			f.more[i] = n
			f.verdicts[i], _, _ = limit.Decide(&it.Limit.Params, it.Bounds, &f.states[i], now, n*it.Cost)
		}
	}
}

// hand hands a member its verdicts, unless its caller has left. It reports whether
// that was the last call of the ticket, and whether the caller was there.
func (f *flight) hand(m *member, verdicts []limit.Verdict) (last, inTime bool) {
	t, c := m.ticket, &m.call
	t.mu.Lock()
	if inTime = !t.left; inTime {
		f.decideItems(t.items[c.First:c.Last], verdicts, c.Once != nil)
	}
	last = t.answered()
	t.mu.Unlock()
	return last, inTime
}

// decideItems gives the items of a call their verdicts. Kept reports whether the store keeps
// the answer.
func (f *flight) decideItems(items []limit.Item, verdicts []limit.Verdict, kept bool) {
	for i := range items {
		it := &items[i]
		it.Verdict, it.Source, it.More = verdicts[i], limit.SourceStore, f.more[i]
		it.Repeated, it.Kept = f.repeated, kept
		if !it.Allowed {
			it.State, it.At = f.states[i], f.now
		}
	}
}

// each answers the members of a group with do, under their tickets' locks.
func (f *flight) each(g *group, do func(*ticket, limit.Call)) {
	g.answered = true
	for at := g.first; at >= 0; at = f.members[at].next {
		m := &f.members[at]
		m.ticket.mu.Lock()
		do(m.ticket, m.call)
		last := m.ticket.answered()
		m.ticket.mu.Unlock()
		if last {
			f.finish(m.ticket)
		}
	}
}

// fail leaves the calls of a group undecided. Sent says that they may have been
// executed.
func (f *flight) fail(g *group, why error, sent bool, tell func(error, []limit.Item)) {
	f.each(g, func(t *ticket, c limit.Call) {
		if t.left { // the caller has counted it
			return
		}
		if t.redirected(c, why) { // the node is well
			f.inTime++
			return
		}
		tell(why, t.items[c.First:c.Last])
		if sent && t.verb == verbTake {
			t.lost += c.Last - c.First
		}
	})
}

// failCommand leaves those calls of a command undecided that have no answer yet.
func (f *flight) failCommand(c *command, why error, sent bool, tell func(error, []limit.Item)) {
	for r := c.first; r >= 0; r = f.runs[r].next {
		for g := f.runs[r].first; g >= 0; g = f.groups[g].next {
			if !f.groups[g].answered {
				f.fail(&f.groups[g], why, sent, tell)
			}
		}
	}
}
