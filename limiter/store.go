package limiter

import (
	"context"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Store decides calls against buckets that all proxies share, or that live in
// this process. Any number of goroutines may use it.
type Store interface {
	// Take decides each call, items[First:Last], all or nothing, in their
	// order: it fills in verdict and source of every item and, where no
	// enforced item of the call denies, takes the units. Items that it could
	// not decide before the deadline it leaves with SourceNone.
	Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call)
	// Start begins what Take does; it may stay here until Flush, so that calls which
	// are begun together travel together. It returns nil when every call is answered
	// already, or none will be because the deadline has passed.
	// Else done is called with the token, once and on any goroutine, when all are,
	// or never; and end must be called, after that or at the deadline: it ends the
	// waiting, and reports whether there are calls that Take must be asked for
	// again: those with Item.Again. Done is not called after it.
	Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) (end func() bool)
	// Flush sends what Ask has begun, whoever called it.
	Flush()
	// Peek fills in the verdicts that Take would, and takes nothing.
	Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call)
	// Refund gives back the units that Take took for the items, in the windows
	// in which it took them. What cannot be given back is lost and counted.
	Refund(at limit.DecisionTime, items []limit.Item)
	// Settle changes what is kept of a request that is held. Where the store does not
	// answer before the deadline the outcome is OutcomeUnknown.
	// It returns the names of buckets that it changed: what is cached of them is void.
	Settle(at limit.DecisionTime, what *limit.Settlement) (outcome limit.Outcome, changed []string)
	// Reset forgets buckets, see Limiter.Reset.
	Reset(ctx context.Context, tenant, id string) (int64, error)
	// Forget forgets the bucket with a name, which is all of its key, and reports
	// whether there was one.
	Forget(ctx context.Context, name string) (bool, error)
	// Saturated reports whether the shard that holds an item's bucket has more to
	// do than it can.
	Saturated(it *limit.Item) bool
	// Pause returns for how long an item's shard will not be asked, because it has
	// not answered; 0 where it will.
	Pause(it *limit.Item) time.Duration
	// Locate names the place where an item's bucket lives, for people.
	Locate(it *limit.Item) string
}

// Backstop decides while the store is sick. Any number of goroutines may use it.
type Backstop interface {
	// Decide fills in verdict and source of the items of those of a request's calls,
	// items[First:Last], that the store did not decide.
	Decide(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call)
	// Peek fills in what Decide would, and takes nothing.
	Peek(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call)
	// Share decides the items of one call by this instance's share, healthy or not,
	// and takes the units if take is set.
	Share(at limit.DecisionTime, items []limit.Item, take bool)
	// Reset forgets this instance's buckets, as Store.Reset does.
	Reset(ctx context.Context, tenant, id string) (int64, error)
	// Forget forgets this instance's share of a bucket.
	Forget(name string)
	// Refund gives back what Decide or Share took for the items.
	Refund(items []limit.Item)
	// Settle changes what Decide held of a request, and reports whether there was
	// anything.
	Settle(at limit.DecisionTime, what *limit.Settlement) bool
}

// Observer is told every decision and every settlement, once. Any number of goroutines
// may call it.
type Observer interface {
	Observe(set *limit.Set, d *limit.Decision, items []limit.Item)
	Settled(change limit.Change, outcome limit.Outcome)
}
