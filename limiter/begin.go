package limiter

import "time"

// Start begins what Decide does, without waiting for the store, for requests that
// arrived at since, or now if that is zero: what they waited is a part of the
// time that the decision may take. It reports whether the decisions are made
// already. If not, done is called with the token, once and on any goroutine, when
// the store has answered, or never; and End must be called, after that or at the
// deadline. After it done is not called. What was begun may wait for Flush.
func (l *Limiter) Start(b *Batch, since time.Time, done func(token uint64), token uint64) (decided bool) {
	b.at, b.set = l.moment(), l.set.Load()
	if !since.IsZero() {
		b.at.Timeout -= b.at.Start.Sub(since)
	}
	b.resolve(b.set, l.opts.Addrs, b.at.Now)
	b.denyFromCache(l.deny, l.leases, l.instant(b.at.Start), true)
	calls := l.callsForStore(b.at, b, true)
	b.end, b.cached = nil, false
	if len(calls) > 0 {
		b.end = l.opts.Store.Start(b.at, b.buf.Items, calls, done, token)
	}
	if b.end != nil {
		return false
	}
	if l.finishAnswered(b) {
		return true
	}
	done(token) // there is nothing to wait for, but units to give back
	return false
}

// Flush sends what Begin has begun, of all batches. Any number of goroutines may
// call it.
func (l *Limiter) Flush() { l.opts.Store.Flush() }

// Finish ends what Begin began, whether or not the store has answered. It reports
// whether the decisions are made. If not, the store must be asked again, by
// Resume, which waits.
func (l *Limiter) Finish(b *Batch) (decided bool) {
	if b.end != nil {
		end := b.end
		b.end = nil
		if end() {
			return false
		}
	}
	return l.finishAnswered(b)
}

// finishAnswered makes the decisions of what was answered. It reports false, having
// changed nothing, when units have to be given back for that.
func (l *Limiter) finishAnswered(b *Batch) bool {
	l.cacheResults(b, b.calls, b.at)
	b.cached = true
	l.useBackstop(b, b.at, Backstop.Decide)
	b.merge()
	if b.anyGrantDenied() {
		return false
	}
	b.pending = b.pending[:0]
	l.report(b, b.set, b.at)
	return true
}

// FinishBlocking makes the decisions that Begin and End could not. It waits for the store
// where it must.
func (l *Limiter) FinishBlocking(b *Batch) {
	if !b.cached { // the store wants to be asked again for some calls
		b.undecided = b.undecided[:0]
		for _, c := range b.calls {
			if it := &b.buf.Items[c.First]; it.Retry {
				it.Retry = false
				b.undecided = append(b.undecided, c)
			}
		}
		l.opts.Store.Take(b.at, b.buf.Items, b.undecided)
		l.cacheResults(b, b.calls, b.at)
		l.useBackstop(b, b.at, Backstop.Decide)
	}
	b.merge()
	l.refundDenied(b.at, b)
	l.decide(b, b.set, b.at)
}
