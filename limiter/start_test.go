package limiter_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// slowStore is a memory store that answers through done, or requests a retry of all
// calls.
type slowStore struct {
	*memory.Store
	again bool // all calls must be retried
}

func (s *slowStore) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(uint64), token uint64) func() bool {
	if s.again {
		for _, c := range calls {
			items[c.First].Retry = true
		}
		return func() bool { return true }
	}
	s.Take(at, items, calls)
	done(token)
	return func() bool { return false }
}

// TestStartIsDecide drives random batches through Decide and through Start, Finish and
// FinishBlocking, each with a store of its own: the decisions are the same.
func TestStartIsDecide(t *testing.T) {
	specs := []storetest.Spec{
		{ID: "tenant", By: []string{"tenant"}, Rate: "9/h"},
		{ID: "op", By: []string{"tenant", "op"}, Rate: "5/h"},
		{ID: "region", By: []string{"region"}, Rate: "7/h"},
		{ID: "user", By: []string{"user"}, Rate: "4/h"},
	}
	blocked := 0
	rapid.Check(t, func(rt *rapid.T) {
		now := start
		store := &slowStore{Store: memory.New(memory.Options{Buckets: 1000})}
		whole := clocked(t, memory.New(memory.Options{Buckets: 1000}), &now, 0, specs...)
		parts := clocked(t, store, &now, 0, specs...)
		for range rapid.IntRange(1, 10).Draw(rt, "batches") {
			now = now.Add(time.Duration(rapid.IntRange(0, 600).Draw(rt, "s")) * time.Second)
			store.again = rapid.IntRange(0, 4).Draw(rt, "again") == 0
			var requests []limit.Request
			for range rapid.IntRange(1, 6).Draw(rt, "batch") {
				requests = append(requests, limit.Request{
					Tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "tenant"),
					Op:     rapid.SampledFrom([]string{"", "x"}).Draw(rt, "op"),
					Dims:   []limit.Dim{{Name: "region", Value: "r"}, {Name: "user", Value: rapid.SampledFrom([]string{"u", "v"}).Draw(rt, "user")}},
					Cost:   rapid.SampledFrom([]int64{1, 1, 2, 6}).Draw(rt, "cost"),
				})
			}
			want := decide(whole, requests...)
			var b limiter.Batch
			b.Requests = append(b.Requests, requests...)
			if !parts.Start(&b, time.Time{}, func(uint64) {}, 1) && !parts.Finish(&b) {
				blocked++
				parts.FinishBlocking(&b)
			}
			for i := range want {
				got := b.Decisions[i]
				// The limits are compiled twice, so that their ids are compared.
				if got.Allowed != want[i].Allowed || got.Remaining != want[i].Remaining || got.RetryAfter != want[i].RetryAfter ||
					got.LimitID() != want[i].LimitID() || got.Source != want[i].Source {
					rt.Fatalf("request %d %+v: %+v, want %+v", i, requests[i], got, want[i])
				}
			}
		}
	})
	if blocked < 50 {
		t.Errorf("FinishBlocking was needed %d times, want at least 50", blocked)
	}
}
