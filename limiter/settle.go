package limiter

import "github.com/limitgate/limitgate/limit"

// Settle changes the record of a request that was admitted, for its buckets in its
// tenant's hash slot. Kept reports that the store had a record of it when it was
// admitted. Requests that the backstop decided are held by this proxy, if at all, and
// settled by the backstop. Settle is safe for concurrent use.
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
	if kept || what.Hold == limit.HoldSlot { // the store may have granted a slot after its caller had left
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

// Returned drops the cached denials of the buckets with the names: something other than a
// decision changed them. It is safe for concurrent use.
func (l *Limiter) Returned(names []string) {
	if l.deny == nil {
		return
	}
	now := l.instant(l.opts.Now())
	for _, name := range names {
		l.deny.forgetOne(name, now)
	}
}

// Held reports whether the store has a record of request i, which was admitted and is
// held, so that it can be settled.
func (b *Batch) Held(i int) bool {
	for _, c := range b.requestCalls(i) {
		if c.Hold != limit.HoldNone && b.buf.Items[c.First].Recorded {
			return true
		}
	}
	return false
}
