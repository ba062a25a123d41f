package limiter

import "github.com/limitgate/limitgate/limit"

// Peek fills b.Decisions with the decisions that Decide would make, and takes nothing.
func (l *Limiter) Peek(b *Batch) { l.peek(b, l.set.Load(), l.deny) }

// peek peeks with set, and looks in deny first, unless it is nil.
func (l *Limiter) peek(b *Batch, set *limit.Set, deny *denyCache) {
	b.at = l.moment()
	b.resolve(set, l.opts.Addrs, b.at.Now)
	b.denyFromCache(deny, l.leases, l.instant(b.at.Start), false)
	calls := l.callsForStore(b, false)
	l.opts.Store.Peek(b.at, b.buf.Items, calls)
	l.useBackstop(b, Backstop.Peek)
	b.merge()
	for i := range b.Decisions {
		if d := &b.Decisions[i]; !b.Requests[i].CarriesLimits() {
			d.RetryAfter = l.retries.peek(d)
			d.Unbind()
		}
	}
}

// PeekLimit peeks for the one request of b as Peek does, but decides by one of its limits alone.
// It does not use the deny cache, which may know another limit that denies and leave this one
// out. PeekLimit returns false if no bucket of the limit decides about the request.
func (l *Limiter) PeekLimit(b *Batch, id string) bool {
	l.peek(b, l.set.Load(), nil)
	d, ok := limit.Alone(b.Items(0), id)
	if ok {
		d.RetryAfter = l.retries.peek(&d)
		b.Decisions[0] = d
	}
	return ok
}
