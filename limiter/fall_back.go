package limiter

import "github.com/limitgate/limitgate/limit"

// fallBack has the backstop answer, by its Decide or its Peek, what the store left
// undecided. What is denied for that until the store answers is told to come back
// when it will be asked again.
func (l *Limiter) fallBack(b *Batch, at limit.Moment, answer func(Backstop, limit.Moment, *limit.Request, []limit.Item, []limit.Call)) {
	for _, i := range b.pending {
		if b.Decisions[i].Source == limit.SourceCache {
			continue
		}
		b.undecided = b.undecided[:0]
		for _, c := range b.requestCalls(i) {
			if b.buf.Items[c.First].Source == limit.SourceNone {
				b.undecided = append(b.undecided, c)
			}
		}
		if len(b.undecided) == 0 {
			continue
		}
		answer(l.opts.Backstop, at, &b.Requests[i], b.buf.Items, b.undecided)
		for _, c := range b.undecided {
			l.postpone(b.buf.Items[c.First:c.Last])
		}
	}
}

// postpone has the callers of limits that fail closed wait for the store.
func (l *Limiter) postpone(call []limit.Item) {
	for i := range call {
		if it := &call[i]; it.Source == limit.SourcePolicy {
			it.Wait = max(it.Wait, l.opts.Store.Pause(it).Milliseconds()+1)
		}
	}
}
