package rollout

import (
	"context"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/limit"
)

// localStore is a limiter store of this instance's part of each limit, independent of
// other instances.
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

// Peek decides each call without taking units.
func (a localStore) Peek(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		a.shares.Share(at, items[c.First:c.Last], false)
	}
}

// Refund returns units.
func (a localStore) Refund(_ limit.DecisionTime, items []limit.Item) { a.shares.Refund(items) }

// Settle returns OutcomeUnknown: there are no reservations.
func (localStore) Settle(limit.DecisionTime, *limit.Settlement) (limit.Outcome, []string) {
	return limit.OutcomeUnknown, nil
}

// Reset deletes buckets.
func (a localStore) Reset(ctx context.Context, tenant, id string) (int64, error) {
	return a.shares.Reset(ctx, tenant, id)
}

// Forget deletes a bucket. It always returns false.
func (a localStore) Forget(_ context.Context, name string) (bool, error) {
	a.shares.Forget(name)
	return false, nil
}

// Saturated returns false: there are no other users.
func (localStore) Saturated(*limit.Item) bool { return false }

// Pause returns 0: the store is always available.
func (localStore) Pause(*limit.Item) time.Duration { return 0 }

// Locate returns a name for people.
func (localStore) Locate(*limit.Item) string { return "comparison" }
