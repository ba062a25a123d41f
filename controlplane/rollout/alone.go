package rollout

import (
	"context"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/limit"
)

// alone is a store that is this instance's part of each limit, whatever anybody else
// takes.
type alone struct{ shares *backstop.Backstop }

// Take decides each call.
func (a alone) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		a.shares.Share(at, items[c.First:c.Last], true)
	}
}

// Start is Take.
func (a alone) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) (end func() bool) {
	a.Take(at, items, calls)
	return nil
}

// Flush does nothing: nothing waits.
func (alone) Flush() {}

// Peek decides each call, and takes nothing.
func (a alone) Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		a.shares.Share(at, items[c.First:c.Last], false)
	}
}

// Refund gives units back.
func (a alone) Refund(_ limit.DecisionTime, items []limit.Item) { a.shares.Refund(items) }

// Settle knows nothing that is held.
func (alone) Settle(limit.DecisionTime, *limit.Settlement) (limit.Outcome, []string) {
	return limit.OutcomeUnknown, nil
}

// Reset forgets buckets.
func (a alone) Reset(ctx context.Context, tenant, id string) (int64, error) {
	return a.shares.Reset(ctx, tenant, id)
}

// Forget forgets a bucket, and does not know whether there was one.
func (a alone) Forget(_ context.Context, name string) (bool, error) {
	a.shares.Forget(name)
	return false, nil
}

// Saturated is false: nobody else asks.
func (alone) Saturated(*limit.Item) bool { return false }

// Pause is 0: it always answers.
func (alone) Pause(*limit.Item) time.Duration { return 0 }

// Locate names it, for people.
func (alone) Locate(*limit.Item) string { return "comparison" }
