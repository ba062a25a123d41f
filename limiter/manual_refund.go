package limiter

import "github.com/limitgate/limitgate/limit"

// Credit gives a request's cost back to those of its buckets that are its tenant's own:
// never more than a bucket holds, and to a window only while it runs. Buckets that
// tenants share get nothing. It reports whether the store did; where it is sick
// nothing is given. The batch is used for the work.
func (l *Limiter) Credit(b *Batch, req *limit.Request) bool {
	b.Reset()
	b.Requests = append(b.Requests, *req)
	at, set := l.moment(), l.set.Load()
	b.resolve(set, l.opts.Addrs, at.Now)
	var owned []limit.Call
	for _, c := range b.requestCalls(0) {
		if it := &b.buf.Items[c.First]; !c.Local && !it.Limit.SpansTenants() {
			owned = append(owned, c)
		}
	}
	l.opts.Store.Peek(at, b.buf.Items, owned) // to learn the windows
	var items []limit.Item
	for _, c := range owned {
		for _, it := range b.buf.Items[c.First:c.Last] {
			it.Cost = it.Limit.RefundCost(&b.Requests[0])
			if it.Limit.Params.Algorithm == limit.AlgorithmSlidingLog {
				it.Window = limit.LatestUnits
			}
			if it.Source == limit.SourceStore {
				items = append(items, it)
			}
		}
	}
	b.Reset()
	if len(items) == 0 {
		return false
	}
	l.refund(at, items)
	return true
}
