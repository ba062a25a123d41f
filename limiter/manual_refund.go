package limiter

import (
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// TakeBack returns the units that some requests of a batch took, by their numbers. They were admitted, and
// are as if they had been denied: their caller has a reason that the limits do not know.
func (l *Limiter) TakeBack(b *Batch, requests ...int) {
	var refunds []limit.Item
	held := map[string]bucketUse{}
	for _, i := range requests {
		for _, c := range b.requestCalls(i) {
			if call := b.buf.Items[c.First:c.Last]; granted(call) {
				refunds = appendRefunds(refunds, call, c.RecordKey, held)
			}
		}
	}
	if len(refunds) > 0 {
		l.refund(b.at, refunds)
	}
}

// Credit returns a request's cost to those of its buckets that belong to its tenant
// alone, or those that it names itself. A bucket never gets more than it holds, and a window only while it runs. Buckets
// that tenants share get nothing. Credit reports whether it returned units, and whether the store answered for all of these
// buckets: while it is unavailable nothing is returned. The batch is used for the work.
func (l *Limiter) Credit(b *Batch, req *limit.Request) (returned, answered bool) {
	b.Reset()
	b.Requests = append(b.Requests, *req)
	at, set := l.moment(), l.set.Load()
	b.resolve(set, l.opts.Addrs, at.Now)
	var owned []limit.Call
	for _, c := range b.requestCalls(0) {
		if it := &b.buf.Items[c.First]; !c.Local && (req.Descriptors != nil || !it.Limit.SpansTenants()) {
			owned = append(owned, c)
		}
	}
	l.opts.Store.Peek(at, b.buf.Items, owned) // for the windows
	var items []limit.Item
	answered = true
	for _, c := range owned {
		for _, it := range b.buf.Items[c.First:c.Last] {
			answered = answered && it.Source == limit.SourceStore
			if req.Descriptors == nil {
				it.Cost = it.Limit.RefundCost(&b.Requests[0])
			}
			if it.Limit.Params.Algorithm == bucket.AlgorithmSlidingLog {
				it.Window = bucket.LatestUnits
			}
			if it.Source == limit.SourceStore {
				items = append(items, it)
			}
		}
	}
	b.Reset()
	if len(items) > 0 {
		l.refund(at, items)
	}
	return len(items) > 0, answered
}
