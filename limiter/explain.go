package limiter

import (
	"context"

	"github.com/limitgate/limitgate/limit"
)

// Explanation is one limit, what became of it for a request, and its bucket.
type Explanation struct {
	limit.Considered
	// Item has the bucket's name and what it would say; nil for limits that
	// did not apply or count nothing.
	Item *limit.Item
	// Node is where the bucket lives.
	Node string
}

// Explain says what would be decided about a request, and why, limit by limit.
// It takes nothing. Batch is used for the work and holds the items.
func (l *Limiter) Explain(b *Batch, req *limit.Request) (limit.Decision, []Explanation) {
	b.Reset()
	b.Requests = append(b.Requests, *req)
	l.Peek(b)
	items := b.items(0)
	var out []Explanation
	for _, c := range l.set.Load().Explain(req) {
		e := Explanation{Considered: c}
		for i := range items {
			if it := &items[i]; it.Limit == c.Limit && it.Name != nil {
				e.Item, e.Node = it, l.opts.Store.Locate(it)
			}
		}
		out = append(out, e)
	}
	return b.Decisions[0], out
}

// Reset forgets the buckets of a tenant, or of one of its limits when id is
// not empty; without a tenant those of the shared limit id. It returns how many
// there were.
func (l *Limiter) Reset(ctx context.Context, tenant, id string) (int64, error) {
	return l.opts.Store.Reset(ctx, tenant, id)
}
