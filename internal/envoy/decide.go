package envoy

import (
	"slices"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// decide decides a request. Descriptors that are charged whatever the answer is come first: their
// verdicts count for the answer, and a denied request takes nothing for the others.
func (s *Service) decide(q *question) {
	if q.native {
		s.decideNative(q)
		return
	}
	s.charge(q)
	s.take(q)
	s.refund(q)
}

// verdict notes the verdict about a descriptor.
func (b *bound) verdict(it *limit.Item) {
	if it.Source == limit.SourceNone { // a denial in the deny cache leaves other items undecided
		b.remaining = b.limit.Params.Capacity
		return
	}
	b.remaining = it.Remaining
	b.over = it.Denies() || it.Cost == 0 && it.Remaining == 0
	if b.quota && b.limit.OnError == limit.OnErrorClosed && it.Source == limit.SourceBackstop {
		b.over, b.remaining = true, 0 // the limit of a quota is one in shadow mode, which nothing else closes
	}
	switch {
	case b.limit.Params.Algorithm == bucket.AlgorithmFixedWindow: // whose windows follow from the policy
	case b.over:
		b.wait(it.Wait)
	default:
		b.wait(it.Reset)
	}
}

// charge takes the units of the descriptors with hits of their own. Those that do not fit take what is
// left, so that the counter is full until its window ends: Envoy asks after the fact.
func (s *Service) charge(q *question) {
	q.collect(roleCharge)
	for attempt := 0; len(q.asked) > 0 && attempt < chargeAttempts; attempt++ {
		q.batch.Reset()
		q.askEach()
		s.opts.Limiter.Decide(&q.batch)
		again := 0
		for i, n := range q.asked {
			b, it := &q.bound[n], &q.batch.Items(i)[0]
			if attempt == 0 {
				b.verdict(it)
			}
			if b.remaining = it.Remaining; it.Allowed || it.Capped || it.Remaining == 0 {
				continue
			}
			q.asked[again], q.ask[again] = n, q.ask[i]
			q.ask[again].Cost = it.Remaining
			again++
		}
		q.asked, q.ask = q.asked[:again], q.ask[:again]
	}
}

// chargeAttempts bounds how often a charge is tried: others take units at the same time.
const chargeAttempts = 3

// take decides the descriptors that are taken together or not at all. If the request is denied already,
// it only looks.
func (s *Service) take(q *question) {
	q.over = q.denies()
	q.collect(roleTake)
	if len(q.ask) == 0 {
		return
	}
	q.batch.Reset()
	q.batch.Requests = append(q.batch.Requests, q.request())
	if q.over {
		s.opts.Limiter.Peek(&q.batch)
		q.note(q.batch.Items(0))
	} else {
		s.opts.Limiter.Decide(&q.batch)
		if q.note(q.batch.Items(0)); q.over && q.batch.Decisions[0].Allowed { // a look denies, or all quotas together
			s.opts.Limiter.TakeBack(&q.batch, 0)
		}
	}
	s.waitsOfLooks(q)
}

// denyClosed notes the verdicts of rules that admit nothing, which have no counter.
func (q *question) denyClosed() {
	for i := range q.bound {
		if b := &q.bound[i]; b.limit == nil && b.role != roleNone {
			b.over = b.role != roleRefund
		}
	}
}

// request returns the request of the descriptors to ask, which are taken together.
func (q *question) request() limit.Request {
	return limit.Request{Key: q.ask[0].Counter, Cost: 1, Descriptors: q.ask}
}

// waitsOfLooks sets the waits of descriptors that take nothing and are over: verdicts about them have none.
// Such a descriptor is admitted when one unit is left.
func (s *Service) waitsOfLooks(q *question) {
	q.ask, q.asked = q.ask[:0], q.asked[:0]
	for i := range q.bound {
		b := &q.bound[i]
		if b.over && b.role == roleTake && b.hits == 0 && b.limit != nil && b.limit.Params.Algorithm != bucket.AlgorithmFixedWindow {
			q.asked = append(q.asked, i)
			q.ask = append(q.ask, limit.Descriptor{Limit: b.limit, Counter: b.counter, Slot: b.slot, Cost: 1})
		}
	}
	if len(q.ask) == 0 {
		return
	}
	q.batch.Reset()
	q.askEach()
	s.opts.Limiter.Peek(&q.batch)
	for i, n := range q.asked {
		if it := &q.batch.Items(i)[0]; it.Denies() {
			q.bound[n].wait(it.Wait)
		}
	}
}

// askEach makes a request of each descriptor to ask.
func (q *question) askEach() {
	for i := range q.ask {
		q.batch.Requests = append(q.batch.Requests, limit.Request{Key: q.ask[i].Counter, Cost: max(1, q.ask[i].Cost), Descriptors: q.ask[i : i+1 : i+1]})
	}
}

// note notes the verdicts about the descriptors that are taken together, and the answer.
func (q *question) note(items []limit.Item) {
	for i, n := range q.asked {
		q.bound[n].verdict(&items[i])
	}
	if q.over = q.denies(); !q.over {
		return
	}
	for i, n := range q.asked {
		if b := &q.bound[n]; items[i].Allowed { // its units go back, or were never taken
			b.remaining = min(b.remaining+items[i].Cost, b.limit.Params.Capacity)
		}
	}
}

// denies reports whether the descriptors deny the request: an enforced one, or all quotas.
func (q *question) denies() bool {
	quotas, full := 0, 0
	for i := range q.bound {
		b := &q.bound[i]
		switch {
		case b.shadow || q.behaviour.Shadow || b.role != roleTake && b.role != roleCharge:
		case b.quota && b.of > 0: // part of its descriptor's
		case b.quota:
			quotas++
			if b.over || q.furtherOver(i) {
				full++
			}
		case b.over:
			return true
		}
	}
	return quotas > 0 && quotas == full
}

// furtherOver reports whether a further limit of a descriptor is over.
func (q *question) furtherOver(i int) bool {
	return slices.ContainsFunc(q.bound, func(b bound) bool { return b.of == i+1 && b.over })
}

// fold makes the status of each descriptor that of the tightest of its limits, and leaves out the further
// ones.
func (q *question) fold() {
	n := len(q.bound)
	for ; n > 0 && q.bound[n-1].of > 0; n-- {
		further := &q.bound[n-1]
		b := &q.bound[further.of-1]
		if further.tighter(b, q.now) {
			b.over, b.remaining, b.policy, b.reset, b.never = further.over, further.remaining, further.policy, further.reset, further.never
		}
	}
	clear(q.bound[n:])
	q.bound = q.bound[:n]
}

// tighter reports whether a limit holds its descriptor back more than another one: it denies, or denies for
// longer, or leaves less.
func (b *bound) tighter(than *bound, now time.Time) bool {
	switch {
	case b.over != than.over:
		return b.over
	case !b.over:
		return b.remaining < than.remaining
	case b.never != than.never:
		return b.never
	default:
		return b.untilReset(now) > than.untilReset(now)
	}
}

// collect fills q.ask with the descriptors of a role that have a counter.
func (q *question) collect(r role) {
	q.ask, q.asked = q.ask[:0], q.asked[:0]
	slotted := false
	for i := range q.bound {
		if b := &q.bound[i]; b.role == r && b.limit != nil {
			q.asked = append(q.asked, i)
			slotted = slotted || b.slot != ""
		}
	}
	if slotted { // those of one slot are decided together
		slices.SortStableFunc(q.asked, func(i, j int) int { return strings.Compare(q.bound[i].slot, q.bound[j].slot) })
	}
	for _, i := range q.asked {
		b := &q.bound[i]
		q.ask = append(q.ask, limit.Descriptor{Limit: b.limit, Counter: b.counter, Slot: b.slot, Cost: b.hits})
	}
}

// refund gives units back, if this service may.
func (s *Service) refund(q *question) {
	q.collect(roleRefund)
	if len(q.ask) == 0 {
		return
	}
	if s.opts.MayRefund {
		s.opts.Limiter.Credit(&q.batch, &limit.Request{Key: q.ask[0].Counter, Cost: 1, Descriptors: q.ask})
	} else {
		s.stats.refusedRefunds.Add(int64(len(q.ask)))
	}
	q.batch.Reset()
	q.batch.Requests = append(q.batch.Requests, limit.Request{Key: q.ask[0].Counter, Cost: 1, Descriptors: q.looks()})
	s.opts.Limiter.Peek(&q.batch)
	items := q.batch.Items(0)
	for i, n := range q.asked {
		q.bound[n].verdict(&items[i])
		q.bound[n].over = false
	}
}

// looks makes the descriptors of q.ask take nothing.
func (q *question) looks() []limit.Descriptor {
	for i := range q.ask {
		q.ask[i].Cost = 0
	}
	return q.ask
}
