package rollout

import (
	"context"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/limit"
)

// localStore is a store that is this instance's part of each limit, whatever anybody else
// takes.
type localStore struct{ shares *backstop.Backstop }

// Take decides each call.
func (a localStore) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		a.shares.Share(at, items[c.First:c.Last], true)
	}
}

// Start is Take.
func (a localStore) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) (end func() bool) {
	a.Take(at, items, calls)
	return nil
}

// Flush does nothing: nothing waits.
func (localStore) Flush() {}

// Peek decides each call, and takes nothing.
func (a localStore) Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		a.shares.Share(at, items[c.First:c.Last], false)
	}
}

// Refund gives units back.
func (a localStore) Refund(_ limit.DecisionTime, items []limit.Item) { a.shares.Refund(items) }

// Settle knows nothing that is held.
func (localStore) Settle(limit.DecisionTime, *limit.Settlement) (limit.Outcome, []string) {
	return limit.OutcomeUnknown, nil
}

// Reset forgets buckets.
func (a localStore) Reset(ctx context.Context, tenant, id string) (int64, error) {
	return a.shares.Reset(ctx, tenant, id)
}

// Forget forgets a bucket, and does not know whether there was one.
func (a localStore) Forget(_ context.Context, name string) (bool, error) {
	a.shares.Forget(name)
	return false, nil
}

// Saturated is false: nobody else asks.
func (localStore) Saturated(*limit.Item) bool { return false }

// Pause is 0: it always answers.
func (localStore) Pause(*limit.Item) time.Duration { return 0 }

// Locate names it, for people.
func (localStore) Locate(*limit.Item) string { return "comparison" }
