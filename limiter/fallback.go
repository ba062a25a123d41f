package limiter

import "github.com/limitgate/limitgate/limit"

// useBackstop has the backstop decide or peek the calls that the store left undecided;
// answer is Backstop.Decide or Backstop.Peek. Denials by limits that fail closed get a
// wait until the store is called again.
func (l *Limiter) useBackstop(b *Batch, answer func(Backstop, limit.DecisionTime, *limit.Request, []limit.Item, []limit.Call)) {
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
		answer(l.opts.Backstop, b.at, &b.Requests[i], b.buf.Items, b.undecided)
		for _, c := range b.undecided {
			l.deferRetry(b.buf.Items[c.First:c.Last])
		}
	}
}

// deferRetry makes the callers of limits that fail closed wait until the store is called
// again.
func (l *Limiter) deferRetry(call []limit.Item) {
	for i := range call {
		if it := &call[i]; it.Source == limit.SourcePolicy {
			it.Wait = max(it.Wait, l.opts.Store.Pause(it).Milliseconds()+1)
		}
	}
}
