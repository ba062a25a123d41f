package limiter

import (
	"context"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Store decides calls against buckets that all proxies share, or that live in this
// process. It is safe for concurrent use.
type Store interface {
	// Take decides each call, items[First:Last], all or nothing and in order. It fills in
	// verdict and source of every item, and takes the units if no enforced item of the
	// call denies. Items that it cannot decide before the deadline keep SourceNone.
	Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call)
	// Start begins what Take does. It may delay the calls until Flush, so that calls
	// which are started together are sent together. It returns nil if every call is
	// decided, or if none will be because the deadline has passed. Otherwise it calls
	// done with the token when all calls are decided, once and on any goroutine, or
	// never. The caller must call end after that or at the deadline. End stops the
	// waiting and reports whether Take must be called again for the calls with
	// Item.Retry. A call of done that is under way may still arrive after end.
	Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) (end func() bool)
	// Flush sends the calls that Start delayed, those of all callers.
	Flush()
	// Peek fills in the verdicts that Take would, and takes nothing.
	Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call)
	// Refund returns the units that Take took for the items, in the windows in which it
	// took them. Units that cannot be returned are lost and counted.
	Refund(at limit.DecisionTime, items []limit.Item)
	// Settle changes the record of a request that is held. The outcome is OutcomeUnknown
	// if the store does not answer before the deadline. Settle returns the names of the
	// buckets that it changed: cached state of them is void.
	Settle(at limit.DecisionTime, what *limit.Settlement) (outcome limit.Outcome, changed []string)
	// Reset deletes buckets, see Limiter.Reset.
	Reset(ctx context.Context, tenant, id string) (int64, error)
	// Forget deletes the bucket whose key in Redis is name, and reports whether it
	// existed.
	Forget(ctx context.Context, name string) (bool, error)
	// Saturated reports whether the shard that holds an item's bucket has more work than
	// it can do.
	Saturated(it *limit.Item) bool
	// Pause returns for how long an item's shard will not be called because it has not
	// answered, or 0 if it will be called.
	Pause(it *limit.Item) time.Duration
	// Locate names the node of an item's bucket, for people.
	Locate(it *limit.Item) string
}

// FastStore is a Store in this process that decides most requests in one step.
type FastStore interface {
	Store
	// TakeFast does what Take does for one call of a tenant's items, and returns true. It
	// has no effect and returns false if it cannot: Take must decide then. Now is in
	// microseconds since the epoch.
	TakeFast(now int64, tenant string, items []limit.FastItem) bool
}

// Backstop decides while the store is unavailable. It is safe for concurrent use.
type Backstop interface {
	// Decide fills in verdict and source of the items of calls, items[First:Last]: those
	// calls of a request that the store did not decide.
	Decide(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call)
	// Peek fills in the verdicts that Decide would, and takes nothing.
	Peek(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call)
	// Share decides the items of one call by this instance's share, whether or not the
	// store is available, and takes the units if take is set.
	Share(at limit.DecisionTime, items []limit.Item, take bool)
	// Reset deletes this instance's buckets, as Store.Reset does.
	Reset(ctx context.Context, tenant, id string) (int64, error)
	// Forget deletes this instance's share of a bucket.
	Forget(name string)
	// Refund returns the units that Decide or Share took for the items.
	Refund(items []limit.Item)
	// Settle changes what Decide holds of a request, and reports whether it holds
	// anything.
	Settle(at limit.DecisionTime, what *limit.Settlement) bool
}

// Observer receives every decision and every settlement, once. It is safe for concurrent
// use, and must not keep its arguments. Items are those of the request, see Options.ObserveItems.
// Now is in microseconds since the epoch.
type Observer interface {
	Observe(set *limit.Set, req *limit.Request, now int64, d *limit.Decision, items []limit.Item)
	// Took receives how long n decisions of a source took, from the arrival of their requests. Of
	// very many it may miss some.
	Took(source limit.Source, d time.Duration, n int64)
	Settled(change limit.Change, outcome limit.Outcome)
}
