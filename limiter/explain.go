package limiter

import (
	"slices"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// Explanation is the decision that would be made about a request, with the reasons.
type Explanation struct {
	Decision limit.Decision
	// Set has the limits that made the decision.
	Set    *limit.Set
	Limits []Explained
}

// Explained is one limit with its result for the request, and its bucket.
type Explained struct {
	limit.Considered
	// Item has the bucket's name and the verdict that it would give; nil for limits that
	// did not apply or count nothing.
	Item *limit.Item
	// Node is where the bucket lives.
	Node string
	// Unleased is the id of a limit because of which the store decides each check, though this limit has a lease, or "".
	Unleased string
	// Lease describes how many units of the bucket may be on lease, or is "". Store
	// describes the placement of the bucket and the error that it allows. OnError
	// describes the decision while the store is unavailable.
	Lease, Store, OnError string
}

// explainSlots returns the buckets of limits of concurrency. Only RL.ACQUIRE checks them,
// but an explanation shows the slots that are held, too.
func (l *Limiter) explainSlots(req *limit.Request, set *limit.Set) (slots []limit.Item) {
	var b Batch
	b.Requests = append(b.Requests, *req)
	b.Requests[0].Hold, b.Requests[0].HoldFor, b.Requests[0].ID = limit.HoldSlot, limit.DefaultHold, "explain"
	l.peek(&b, set, nil)
	for _, it := range b.Items(0) {
		if it.Limit.Params.Algorithm == bucket.AlgorithmConcurrency {
			if it.Own().Allowed {
				it.Remaining += it.Cost // the request takes none: these are free
			}
			slots = append(slots, it)
		}
	}
	return slots
}

// unleased returns, for each limit of the first request's calls in which a limit has no lease, or none of a unit for n
// instances, the id of that one: the store decides the whole call.
func (b *Batch) unleased(n int64) map[*limit.Limit]string {
	out := map[*limit.Limit]string{}
	for _, c := range b.requestCalls(0) {
		call := b.buf.Items[c.First:c.Last]
		i := slices.IndexFunc(call, func(it limit.Item) bool { return it.Limit.MostLeased(n) == 0 })
		if i < 0 || c.Local {
			continue
		}
		for j := range call {
			if call[j].Limit != call[i].Limit { // that one describes itself
				out[call[j].Limit] = call[i].Limit.ID
			}
		}
	}
	return out
}

// keepUnits gives the verdicts of buckets that admit the units that the denied request does not take.
func keepUnits(items []limit.Item) {
	for i := range items {
		if it := &items[i]; it.Verdict.Allowed {
			it.Verdict.Remaining = min(it.Verdict.Remaining+it.Cost, it.Limit.Params.Capacity)
		}
	}
}

// Explain explains req limit by limit, and takes nothing. Batch is used for the work and
// holds the items.
func (l *Limiter) Explain(b *Batch, req *limit.Request) Explanation {
	b.Reset()
	b.Requests = append(b.Requests, *req)
	set := l.set.Load()
	l.peek(b, set, nil) // without the cache, so that every bucket is peeked
	items := slices.Clone(b.Items(0))
	out := Explanation{Decision: b.Decisions[0], Set: set}
	if !out.Decision.Allowed {
		keepUnits(items)
	}
	unleased := b.unleased(int64(max(1, l.opts.Instances())))
	items = append(items, l.explainSlots(req, set)...)
	for _, c := range set.Explain(req) {
		n := int64(max(1, l.opts.Instances()))
		e := Explained{Considered: c, Lease: c.Limit.DescribeLease(n), Store: c.Limit.DescribePlacement(n), OnError: c.Limit.DescribeOnError(n)}
		if beside := unleased[c.Limit]; beside != "" && e.Lease != "" {
			e.Unleased, e.Lease = beside, "none: each check asks the store for "+beside+", which has none"
		}
		for i := range items {
			if it := &items[i]; it.Limit == c.Limit && it.Name != nil {
				e.Item, e.Node = it, l.opts.Store.Locate(it)
				if it.Local {
					e.Node = "this proxy"
				}
				break // behind it may be the bucket of the secret before a rotation
			}
		}
		out.Limits = append(out.Limits, e)
	}
	return out
}
