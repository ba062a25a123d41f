package limiter

import (
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// Explanation says what would be decided about a request, and why.
type Explanation struct {
	Decision limit.Decision
	// Set has the limits that it was made with.
	Set    *limit.Set
	Limits []Explained
}

// Explained is one limit, what became of it for the request, and its bucket.
type Explained struct {
	limit.Considered
	// Item has the bucket's name and what it would say; nil for limits that
	// did not apply or count nothing.
	Item *limit.Item
	// Node is where the bucket lives.
	Node string
	// Lease says what may be held of the bucket ahead of requests, or ""; Store,
	// where the bucket lives, and how wrong that can be; and OnError what is decided
	// while the store is sick.
	Lease, Store, OnError string
}

// explainSlots returns the buckets of limits of concurrency, which only RL.ACQUIRE meets:
// whoever asks wants to see what is held, too.
func (l *Limiter) explainSlots(req *limit.Request, set *limit.Set) (slots []limit.Item) {
	var b Batch
	b.Requests = append(b.Requests, *req)
	b.Requests[0].Hold, b.Requests[0].HoldFor, b.Requests[0].ID = limit.HoldSlot, limit.DefaultHold, "explain"
	l.peek(&b, set, nil)
	for _, it := range b.Items(0) {
		if it.Limit.Params.Algorithm == limit.AlgorithmConcurrency {
			slots = append(slots, it)
		}
	}
	return slots
}

// Explain explains req limit by limit, and takes nothing. Batch is used for the
// work and holds the items.
func (l *Limiter) Explain(b *Batch, req *limit.Request) Explanation {
	b.Reset()
	b.Requests = append(b.Requests, *req)
	set := l.set.Load()
	l.peek(b, set, nil) // every bucket is asked, whatever is known
	items := slices.Clone(b.Items(0))
	out := Explanation{Decision: b.Decisions[0], Set: set}
	items = append(items, l.explainSlots(req, set)...)
	for _, c := range set.Explain(req) {
		n := int64(max(1, l.opts.Instances()))
		e := Explained{Considered: c, Lease: c.Limit.DescribeLease(n), Store: c.Limit.DescribePlacement(n), OnError: c.Limit.DescribeOnError(n)}
		for i := range items {
			if it := &items[i]; it.Limit == c.Limit && it.Name != nil {
				e.Item, e.Node = it, l.opts.Store.Locate(it)
				if it.Local {
					e.Node = "this proxy"
				}
			}
		}
		out.Limits = append(out.Limits, e)
	}
	return out
}
