package limiter

import "github.com/limitgate/limitgate/limit"

// Settle changes what is held of a request that was admitted: of its buckets in its
// tenant's slot. Kept says that the store keeps something of it, as far as was known when
// it was admitted. What the backstop decided is held by this proxy, if at all, and settled
// by that. Any number of goroutines may call it.
func (l *Limiter) Settle(what *limit.Settlement, kept bool) limit.Outcome {
	outcome := l.settle(what, kept)
	if l.opts.Observer != nil {
		l.opts.Observer.Settled(what.Change, outcome)
	}
	return outcome
}

func (l *Limiter) settle(what *limit.Settlement, kept bool) limit.Outcome {
	at := l.moment()
	outcome := limit.OutcomeUnknown
	if kept || what.Hold == limit.HoldSlot { // the store may have given a slot too late for its answer
		var changed []string
		outcome, changed = l.opts.Store.Settle(at, what)
		l.Returned(changed)
	}
	here := l.opts.Backstop != nil && l.opts.Backstop.Settle(at, what)
	if outcome == limit.OutcomeUnknown && (here || !kept && what.Change != limit.ChangeRenew) {
		return limit.OutcomeDone
	}
	return outcome
}

// Returned voids what is known of the buckets with the names: their content changed
// otherwise than by a decision. Any number of goroutines may call it.
func (l *Limiter) Returned(names []string) {
	if l.deny == nil {
		return
	}
	now := l.instant(l.opts.Now())
	for _, name := range names {
		l.deny.forgetOne(name, now)
	}
}

// Held reports whether the store keeps something of request i, which was admitted and
// is held, so that it can be settled.
func (b *Batch) Held(i int) bool {
	for _, c := range b.requestCalls(i) {
		if c.Hold != limit.HoldNone && b.buf.Items[c.First].Recorded {
			return true
		}
	}
	return false
}
