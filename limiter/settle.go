package limiter

import "github.com/limitgate/limitgate/limit"

// Settle changes what is held of a request that was admitted: of its buckets in its
// tenant's slot. What was decided without the store is not held there. Any number of
// goroutines may call it.
func (l *Limiter) Settle(what *limit.Settlement) limit.Outcome {
	at := l.moment()
	return l.opts.Store.Settle(at, what)
}

// Held reports whether the store keeps something of request i, which was admitted and
// is held, so that it can be settled.
func (b *Batch) Held(i int) bool {
	for _, c := range b.requestCalls(i) {
		if c.Hold != limit.HoldNone && b.buf.Items[c.First].Kept {
			return true
		}
	}
	return false
}
