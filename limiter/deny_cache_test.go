package limiter_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// counted is a memory store that counts the calls it decides.
type counted struct {
	*memory.Store
	calls int
}

func (c *counted) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	c.calls += len(calls)
	c.Store.Take(at, items, calls)
}

// clocked returns a limiter with the clock now and a cache of size denials.
func clocked(tb testing.TB, store limiter.Store, now *time.Time, size int, specs ...storetest.Spec) *limiter.Limiter {
	tb.Helper()
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		tb.Fatal(err)
	}
	return limiter.New(limiter.Options{
		Store: store, Backstop: backstop.New(backstop.Options{Instances: func() int { return 1 }}), Addrs: addrs, Timeout: time.Second,
		Now: func() time.Time { return *now }, DenyCacheSize: size,
	}, storetest.Compile(tb, specs...))
}

// TestDenyCacheIsHonest drives random histories through a limiter with a cache and one
// without, each with a store of its own: both decide the same, and the wait of a cached
// denial is never shorter than the store's.
func TestDenyCacheIsHonest(t *testing.T) {
	specs := []storetest.Spec{
		{ID: "bucket", By: []string{"tenant"}, Rate: "3/s", Burst: "5"},
		{ID: "sliding", By: []string{"tenant", "op"}, Rate: "6/3s", Algorithm: "sliding_window"},
		{ID: "fixed", By: []string{"tenant", "user"}, Rate: "7/2s", Algorithm: "fixed_window"},
		{ID: "watcher", By: []string{"op"}, Rate: "2/s", Mode: "shadow"},
		{ID: "shared", By: []string{"region"}, Rate: "9/2s"},
	}
	cached := 0
	rapid.Check(t, func(rt *rapid.T) {
		now := start
		plain, store := &counted{Store: memory.New(memory.Options{Buckets: 1000})}, &counted{Store: memory.New(memory.Options{Buckets: 1000})}
		without, with := clocked(t, plain, &now, 0, specs...), clocked(t, store, &now, 8, specs...)
		promised := map[string]int64{}
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 1, 50, 333, 1000, 3000}).Draw(rt, "ms")) * time.Millisecond)
			var requests []limit.Request
			for range rapid.IntRange(1, 3).Draw(rt, "batch") {
				requests = append(requests, limit.Request{
					Tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "tenant"),
					Op:     rapid.SampledFrom([]string{"", "x", "y"}).Draw(rt, "op"),
					Dims:   []limit.Dim{{Name: "user", Value: "u"}, {Name: "region", Value: "r"}},
					Cost:   rapid.SampledFrom([]int64{1, 1, 1, 2, 4, 8}).Draw(rt, "cost"),
				})
			}
			want, got := decide(without, requests...), decide(with, requests...)
			for i := range got {
				if got[i].Allowed != want[i].Allowed {
					rt.Fatalf("%+v: with a cache %+v, without %+v", requests[i], got[i], want[i])
				}
				if got[i].Allowed {
					continue
				}
				due := now.UnixMilli() + got[i].RetryAfter
				key := fmt.Sprint(got[i].LimitID(), requests[i].Tenant, requests[i].Op, requests[i].Cost)
				if got[i].Source != limit.SourceCache {
					promised[key] = due
					continue
				}
				cached++
				if got[i].RetryAfter != bucket.Never && due < promised[key] {
					rt.Fatalf("%+v: wait %d ms shorter than the store's", requests[i], promised[key]-due)
				}
			}
		}
		if store.calls > plain.calls {
			rt.Fatalf("%d calls with a cache, %d without", store.calls, plain.calls)
		}
	})
	if cached < 100 {
		t.Errorf("%d cached refusals in all: the test proves little", cached)
	}
}

// TestDenyCacheBound checks that a flood of denied requests costs the store one call for
// each bucket and second, and that a reset takes effect at once.
func TestDenyCacheBound(t *testing.T) {
	now := start
	store := &counted{Store: memory.New(memory.Options{Buckets: 1000})}
	l := clocked(t, store, &now, 1000, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1/h"})
	flood := func() (denied int) {
		for i := range 1000 {
			for tenant := range 3 {
				d := decide(l, limit.Request{Tenant: fmt.Sprint("t", tenant), Cost: int64(1 + i%2)})[0]
				if !d.Allowed {
					denied++
				}
			}
		}
		return denied
	}
	if denied := flood(); denied != 3*999 {
		t.Errorf("%d denied, want all but one of each tenant", denied)
	}
	// Cost 1 is admitted, cost 2 can never be, and cost 1 is denied then.
	if store.calls > 3*3 {
		t.Errorf("%d calls for 3 buckets in one second", store.calls)
	}
	store.calls = 0
	now = now.Add(limiter.DefaultDenyTTL)
	if flood(); store.calls > 3*2 {
		t.Errorf("%d calls for 3 buckets in the next second", store.calls)
	}
	if _, err := l.Reset(t.Context(), "t1", ""); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Microsecond)
	if d := decide(l, limit.Request{Tenant: "t1", Cost: 1})[0]; !d.Allowed {
		t.Errorf("after a reset: %+v", d)
	}
}

// later is a store that decides the calls only when end is called.
type later struct {
	*counted
	asked int
}

func (s *later) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	s.asked += len(calls)
	calls = slices.Clone(calls)
	return func() bool {
		s.Take(at, items, calls)
		return false
	}
}

// TestDenyCacheRenews checks that one of the requests that come while an entry is about
// to expire calls the store, and that its answer counts for the next second.
func TestDenyCacheRenews(t *testing.T) {
	now := start
	store := &later{counted: &counted{Store: memory.New(memory.Options{Buckets: 1000})}}
	l := clocked(t, store, &now, 1000, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1/h"})
	req := limit.Request{Tenant: "t", Cost: 1}
	for _, allowed := range []bool{true, false} {
		if d := decide(l, req)[0]; d.Allowed != allowed {
			t.Fatalf("%+v, want allowed %v", d, allowed)
		}
	}
	for second := range 3 {
		store.asked = 0
		now = now.Add(limiter.DefaultDenyTTL - time.Millisecond)
		var batches [20]limiter.Batch
		var waiting []*limiter.Batch
		for i := range batches {
			b := &batches[i]
			b.Requests = append(b.Requests, req)
			if !l.Start(b, time.Time{}, func(uint64) {}, 1) {
				waiting = append(waiting, b)
			}
		}
		for _, b := range waiting {
			l.Finish(b)
		}
		for i := range batches {
			if d := batches[i].Decisions[0]; d.Allowed {
				t.Errorf("second %d, batch %d: %+v", second, i, d)
			}
		}
		if store.asked != 1 {
			t.Errorf("second %d: %d calls to the store", second, store.asked)
		}
	}
}

// slow is a memory store whose calls take time by the test's clock.
type slow struct {
	*counted
	now  *time.Time
	took time.Duration
}

func (s *slow) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.counted.Take(at, items, calls)
	*s.now = s.now.Add(s.took)
}

// TestDenyCacheShortWait checks that an entry is not renewed if its wait ends before the
// entry expires.
func TestDenyCacheShortWait(t *testing.T) {
	now := start
	store := &slow{&counted{Store: memory.New(memory.Options{Buckets: 1000})}, &now, 200 * time.Microsecond}
	l := clocked(t, store, &now, 1000, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "100/s", Burst: "1"})
	req := limit.Request{Tenant: "t", Cost: 1}
	decide(l, req)
	store.calls = 0
	for end := now.Add(9 * time.Millisecond); now.Before(end); now = now.Add(10 * time.Microsecond) {
		if d := decide(l, req)[0]; d.Allowed {
			t.Fatalf("%+v", d)
		}
	}
	if store.calls != 1 {
		t.Errorf("%d calls to the store", store.calls)
	}
}

// TestDenyCacheLongestWait checks that a request that several buckets deny gets the
// longest wait, also while one of their entries is about to expire. That bucket's entry
// is renewed by a request that no other bucket denies.
func TestDenyCacheLongestWait(t *testing.T) {
	now := start
	store := &counted{Store: memory.New(memory.Options{Buckets: 1000})}
	l := clocked(t, store, &now, 1000,
		storetest.Spec{ID: "user", By: []string{"tenant", "user"}, Rate: "1/h"},
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "3/30s"},
	)
	ask := func(user string) limit.Decision {
		return decide(l, limit.Request{Tenant: "t", Cost: 1, Dims: []limit.Dim{{Name: "user", Value: user}}})[0]
	}
	for _, user := range []string{"a", "b", "c", "d"} { // the tenant's bucket denies d
		ask(user)
	}
	now = now.Add(500 * time.Millisecond)
	ask("a") // denied by the tenant's entry: the user has no entry yet
	now = now.Add(490 * time.Millisecond)
	store.calls = 0
	for i := range 3 {
		if d := ask("d"); d.Allowed || d.LimitID() != "tenant" {
			t.Errorf("check %d: %+v", i, d)
		}
	}
	if store.calls != 1 {
		t.Errorf("%d calls to the store, want one renewal", store.calls)
	}
}
