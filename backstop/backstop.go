// Package backstop decides without the store, while it is sick. It promises
// that callers are not refused for a fault beyond this instance's fair share,
// and not admitted without bound either: each bucket becomes a token bucket in
// this process, with an n-th of its limit for each of n instances. Limits that
// fail closed are denied. Memory is bounded by the memory store underneath.
package backstop

import (
	"context"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

const (
	// buckets bounds the buckets kept while the store is sick.
	buckets = 100_000
	// retryClosed is when the callers of a limit that fails closed should come
	// back, in ms: the store is asked again at once, so soon.
	retryClosed = 100
)

// Backstop decides for one instance of several. Any number of goroutines may
// use it.
type Backstop struct {
	opts  Options
	store *memory.Store
}

// Options configure a Backstop.
type Options struct {
	// Instances returns how many instances share the limits. It is called for each
	// decision, on any goroutine; what is below 1 counts as 1, and so does nil.
	Instances func() int
}

// New returns the backstop of one of several instances.
func New(opts Options) *Backstop {
	if opts.Instances == nil {
		opts.Instances = func() int { return 1 }
	}
	return &Backstop{opts: opts, store: memory.New(memory.Options{Buckets: buckets})}
}

// Decide fills in verdict and source of the items of one call, and takes the
// units.
func (b *Backstop) Decide(at limit.Moment, items []limit.Item) { b.decide(at, items, true) }

// Peek fills in what Decide would, and takes nothing.
func (b *Backstop) Peek(at limit.Moment, items []limit.Item) { b.decide(at, items, false) }

func (b *Backstop) decide(at limit.Moment, items []limit.Item, take bool) {
	for i := range items {
		take = take && !failsClosed(&items[i])
	}
	shares := b.ask(at, items, take)
	for i := range items {
		items[i].Verdict, items[i].Source = shares[i].Verdict, limit.SourceBackstop
		if failsClosed(&items[i]) {
			items[i].Verdict, items[i].Source = limit.Verdict{Wait: retryClosed}, limit.SourcePolicy
		}
	}
}

// Share decides the items of one call by this instance's share, healthy or not:
// their limits want it so. It takes the units if take is set.
func (b *Backstop) Share(at limit.Moment, items []limit.Item, take bool) {
	shares := b.ask(at, items, take)
	for i := range items {
		items[i].Verdict, items[i].Source, items[i].Local = shares[i].Verdict, limit.SourceLease, true
	}
}

// ask has this instance's shares decide the items of one call, and returns the items
// with the shares' verdicts.
func (b *Backstop) ask(at limit.Moment, items []limit.Item, take bool) []limit.Item {
	shares := b.shares(items)
	call := []limit.Call{{First: 0, Last: len(items)}}
	if take {
		b.store.Take(at, shares, call)
	} else {
		b.store.Peek(at, shares, call)
	}
	return shares
}

// shares returns the items with this instance's share of their limits.
func (b *Backstop) shares(items []limit.Item) []limit.Item {
	shares := make([]limit.Item, len(items))
	n := int64(max(1, b.opts.Instances()))
	for i := range items {
		shares[i] = items[i]
		shares[i].Limit = items[i].Limit.Share(n, items[i].Cost)
	}
	return shares
}

func failsClosed(it *limit.Item) bool {
	return it.Enforced() && it.Limit.OnError == limit.OnErrorClosed
}

// Reset forgets the buckets of a tenant or of one limit, see limiter.Backstop.
func (b *Backstop) Reset(ctx context.Context, tenant, id string) (int64, error) {
	return b.store.Reset(ctx, tenant, id)
}

// Refund gives back what Decide or Share took for the items.
func (b *Backstop) Refund(items []limit.Item) {
	b.store.Refund(limit.Moment{}, b.shares(items))
}
