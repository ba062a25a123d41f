package limiter

import "github.com/limitgate/limitgate/limit"

// FastPath decides requests one at a time, without a batch, where a store in this process has all
// their buckets. It is the shortest way through the steps of Limiter.Start, and makes the same
// decisions. It is not safe for concurrent use.
type FastPath struct {
	// Decision is the decision of the last request.
	Decision limit.Decision

	limiter *Limiter
	set     *limit.Set
	at      limit.DecisionTime
	items   limit.FastBuffer
	named   limit.Buffer // the items with their names
	// uncounted is how many decisions are left out before the next one that Top counts.
	uncounted int
	timing    timing
}

// HasFastPath reports whether BeginFast may be called.
func (l *Limiter) HasFastPath() bool { return l.fast != nil }

// BeginFast begins a run of requests, which are decided by the present limits and time.
func (l *Limiter) BeginFast(f *FastPath) {
	if f.limiter == nil {
		f.uncounted = l.top.drawUncounted()
	}
	f.limiter, f.set, f.at = l, l.set.Load(), l.moment()
}

// Decide decides a request and returns true. It returns false, without effect, for a request that
// Limiter.Start must decide: Set.ResolveFast and FastStore.TakeFast say which.
func (f *FastPath) Decide(req *limit.Request) bool {
	l := f.limiter
	f.items.Reset()
	items := f.set.ResolveFast(req, l.opts.Addrs, f.at.Now, &f.items)
	if len(items) == 0 || !l.fast.TakeFast(f.at.Now, req.Tenant, items) {
		return false
	}
	d := &f.Decision
	limit.MergeFast(items, d)
	f.uncounted--
	var named []limit.Item
	if !d.Allowed || f.uncounted < 0 {
		named = f.Items(req)
	}
	l.reportDecision(f.set, f.at.Now, req, d, named)
	if f.uncounted < 0 {
		l.top.count(req, d, named, f.at.Start)
		f.uncounted = l.top.drawUncounted()
	}
	f.timing.untimed[d.Source]++
	return true
}

// End ends a run that BeginFast has begun.
func (f *FastPath) End() { f.timing.report(f.limiter, f.at.Start, 0) }

// Items returns the limits that applied to the last request, with their verdicts. The slice is
// valid until the next decision.
func (f *FastPath) Items(req *limit.Request) []limit.Item {
	f.named.Reset()
	for i := range f.items.Items {
		f.named.AddFast(req.Tenant, &f.items.Items[i])
	}
	return f.named.Items
}
