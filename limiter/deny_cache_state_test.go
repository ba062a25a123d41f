package limiter_test

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

// isExact fails unless the wait of a denial is the least after which the same request is
// admitted; the next request of a step is made when the wait ends.
func isExact(t *testing.T, name string, plain, cached limit.Decision) {
	t.Helper()
	if plain.Allowed != cached.Allowed || plain.RetryAfter > cached.RetryAfter || cached.RetryAfter > plain.RetryAfter+1 {
		t.Errorf("%s: with a cache %+v, without %+v", name, cached, plain)
	}
}

// TestDenyCacheOtherCosts checks that a cached state is used for every cost, and only
// until a check takes units.
func TestDenyCacheOtherCosts(t *testing.T) {
	type step struct {
		after time.Duration
		cost  int64
	}
	for name, tc := range map[string]struct {
		spec  storetest.Spec
		steps []step
	}{
		"a smaller cost is admitted in between": {
			storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/s", Burst: "5"},
			[]step{{0, 4}, {0, 4}, {time.Millisecond, 1}, {time.Millisecond, 4}, {0, 5}, {100 * time.Millisecond, 2}},
		},
		"a sliding window's larger cost": {
			storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "10/4s", Algorithm: "sliding_window"},
			[]step{{0, 6}, {2900 * time.Millisecond, 4}, {0, 1}, {10 * time.Millisecond, 3}, {10 * time.Millisecond, 7}, {10 * time.Millisecond, 10}},
		},
		"a fixed window's larger cost": {
			storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "10/4s", Algorithm: "fixed_window"},
			[]step{{0, 9}, {0, 2}, {time.Millisecond, 1}, {time.Millisecond, 1}, {time.Millisecond, 10}},
		},
		"a log's other cost": {
			storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "10/4s", Algorithm: "sliding_log"},
			[]step{{0, 5}, {time.Second, 5}, {time.Second, 1}, {time.Millisecond, 6}, {time.Millisecond, 1}},
		},
		"another limit can never hold the cost": {
			storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/s", Burst: "5"},
			[]step{{0, 5}, {0, 1}, {time.Millisecond, 6}, {time.Millisecond, 1}},
		},
	} {
		now := start
		plain := clocked(t, memory.New(memory.Options{}), &now, 0, tc.spec)
		cached := clocked(t, memory.New(memory.Options{}), &now, 100, tc.spec)
		for _, s := range tc.steps {
			now = now.Add(s.after)
			req := limit.Request{Tenant: "t", Cost: s.cost}
			isExact(t, name, decide(plain, req)[0], decide(cached, req)[0])
		}
	}
}

// TestDenyCacheWithinABatch checks that the cache does not decide a check behind another
// check of its batch that may take units of the same bucket.
func TestDenyCacheWithinABatch(t *testing.T) {
	now := start
	spec := storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/s", Burst: "5"}
	plain, cached := clocked(t, memory.New(memory.Options{}), &now, 0, spec), clocked(t, memory.New(memory.Options{}), &now, 100, spec)
	four, one := limit.Request{Tenant: "t", Cost: 4}, limit.Request{Tenant: "t", Cost: 1}
	for _, batch := range [][]limit.Request{{four}, {four}, {one, four}} {
		want, got := decide(plain, batch...), decide(cached, batch...)
		for i := range want {
			isExact(t, "in a batch", want[i], got[i])
		}
	}
}

// TestDenyCacheAfterACommit checks that a commit above the estimate, which takes units,
// drops the cached state of the bucket.
func TestDenyCacheAfterACommit(t *testing.T) {
	now := start
	l := clocked(t, memory.New(memory.Options{}), &now, 100, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/s", Burst: "10"})
	decide(l, limit.Request{Tenant: "t", Cost: 1, ID: "x", Hold: limit.HoldReservation, HoldFor: time.Minute})
	denied := limit.Request{Tenant: "t", Cost: 10}
	if d := decide(l, denied)[0]; d.Allowed || d.RetryAfter != 1000 {
		t.Fatalf("%+v", d)
	}
	now = now.Add(time.Millisecond)
	if got := l.Settle(&limit.Settlement{Hold: limit.HoldReservation, Tenant: "t", ID: "x", Change: limit.ChangeCommit, Units: 6}, true); got != limit.OutcomeDone {
		t.Fatalf("outcome %d", got)
	}
	now = now.Add(time.Millisecond)
	if d := decide(l, denied)[0]; d.RetryAfter < 5998 {
		t.Errorf("after five more units were taken: %+v, want a wait of about 6 s", d)
	}
}
