package limiter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// lender is a memory store that grants lease units, as the store on Redis does.
type lender struct {
	*memory.Store
	calls int
}

func (s *lender) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.calls += len(calls)
	s.Store.Take(at, items, calls)
	for _, c := range calls {
		call := items[c.First:c.Last]
		for more := int64(0); more < call[0].LeaseWanted && !refused(call); more++ {
			was := append([]limit.Item(nil), call...)
			s.Store.Take(at, items, []limit.Call{c})
			if refused(call) {
				copy(call, was)
				break
			}
			for i := range call {
				call[i].LeaseGranted = more + 1
			}
		}
	}
}

func refused(call []limit.Item) bool {
	for i := range call {
		if call[i].Enforced() && !call[i].Allowed {
			return true
		}
	}
	return false
}

// leasing returns one of n limiters on a store, with the clock now or, if that is nil,
// the machine's. Every limit may be leased.
func leasing(tb testing.TB, store limiter.Store, now *time.Time, n int, lease limit.Lease, specs ...storetest.Spec) *limiter.Limiter {
	tb.Helper()
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		tb.Fatal(err)
	}
	set := storetest.Compile(tb, specs...)
	for _, l := range set.Limits {
		l.Lease = lease
	}
	clock := time.Now
	if now != nil {
		clock = func() time.Time { return *now }
	}
	return limiter.New(limiter.Options{
		Store: store, Backstop: backstop.New(backstop.Options{Instances: func() int { return n }}), Addrs: addrs, Timeout: time.Second,
		Now: clock, Instances: func() int { return n }, DenyCacheSize: 100,
	}, set)
}

// handBack ends a limiter as a shutdown does.
func handBack(t testing.TB, l *limiter.Limiter) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// TestLeasesMintNothing drives random histories through several limiters that lease from
// one store. They never admit more than the limit allows, a denial means that all units
// are used or held on lease, and no unit is missing after all have returned their leases.
func TestLeasesMintNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		now := start
		store := &lender{Store: memory.New(memory.Options{Buckets: 1000})}
		n := rapid.IntRange(1, 3).Draw(rt, "instances")
		lease := limit.Lease{On: true, Size: rapid.Int64Range(1, 40).Draw(rt, "size"), TTL: limit.MinLeaseTTL}
		lease.Auto = rapid.Bool().Draw(rt, "auto")
		specs := []storetest.Spec{
			{ID: "tenant", By: []string{"tenant"}, Rate: "400/366d", Algorithm: rapid.SampledFrom([]string{"fixed_window", "token_bucket"}).Draw(rt, "algorithm")},
			{ID: "op", By: []string{"tenant", "op"}, Rate: "300/366d", Algorithm: "fixed_window"},
			{ID: "region", By: []string{"region"}, Rate: "350/366d", Algorithm: "fixed_window"},
		}
		proxies := make([]*limiter.Limiter, n)
		for i := range proxies {
			proxies[i] = leasing(t, store, &now, n, lease, specs...)
		}
		admitted := map[string]int64{}
		for range rapid.IntRange(1, 150).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 5, 20, 1100}).Draw(rt, "ms")) * time.Millisecond)
			req := limit.Request{Tenant: "t", Cost: rapid.SampledFrom([]int64{1, 1, 3}).Draw(rt, "cost")}
			req.Op = rapid.SampledFrom([]string{"", "x"}).Draw(rt, "op")
			if rapid.Bool().Draw(rt, "region") {
				req.Dims = []limit.Dim{{Name: "region", Value: "r"}}
			}
			d := decide(proxies[rapid.IntRange(0, n-1).Draw(rt, "proxy")], req)[0]
			if d.Allowed {
				charge(admitted, &req)
			}
			if admitted["tenant"] > 400 || admitted["op"] > 300 || admitted["region"] > 350 {
				rt.Fatalf("admitted %v", admitted)
			}
		}
		for _, p := range proxies {
			handBack(t, p)
		}
		checkLeft(rt, proxies[0], admitted)
	})
}

func charge(admitted map[string]int64, req *limit.Request) {
	admitted["tenant"] += req.Cost
	if req.Op != "" {
		admitted["op"] += req.Cost
	}
	if len(req.Dims) > 0 {
		admitted["region"] += req.Cost
	}
}

// checkLeft compares the store's buckets with the admitted units.
func checkLeft(rt *rapid.T, l *limiter.Limiter, admitted map[string]int64) {
	var b limiter.Batch
	req := limit.Request{Tenant: "t", Op: "x", Cost: 1, Dims: []limit.Dim{{Name: "region", Value: "r"}}}
	for _, e := range l.Explain(&b, &req).Limits {
		left := e.Item.Remaining
		if e.Item.Allowed {
			left++ // the unit that the peeked request would take
		}
		if want := e.Limit.Params.Capacity - admitted[e.Limit.ID]; left != want {
			rt.Fatalf("%s: %d left after all was handed back, want %d", e.Limit.ID, left, want)
		}
	}
}

// TestLeaseHits checks that leases decide most of sticky traffic, with few calls to the
// store, and that without leases every request costs a call.
func TestLeaseHits(t *testing.T) {
	for _, lease := range []limit.Lease{{On: true, Size: 20, TTL: limit.DefaultLeaseTTL}, {On: true, Auto: true, TTL: limit.DefaultLeaseTTL}} {
		t.Run(fmt.Sprint("auto=", lease.Auto), func(t *testing.T) {
			now := start
			store := &lender{Store: memory.New(memory.Options{Buckets: 1000})}
			l := leasing(t, store, &now, 2, lease, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/s"})
			const requests = 4000
			local := 0
			for range requests {
				now = now.Add(2 * time.Millisecond)
				if d := decide(l, limit.Request{Tenant: "t", Cost: 1})[0]; d.Source == limit.SourceLease {
					local++
				} else if !d.Allowed {
					t.Fatalf("half of the rate is denied: %+v", d)
				}
			}
			t.Logf("%d of %d decided here, %d calls", local, requests, store.calls)
			if local < requests*8/10 || store.calls > requests/5 {
				t.Errorf("%d of %d decided here with %d calls, want four fifths and a fifth", local, requests, store.calls)
			}
			if n := l.LeaseRefreshes(); n == 0 || n > int64(store.calls) {
				t.Errorf("%d refreshes in %d calls", n, store.calls)
			}
		})
	}
}

// TestLeaseEndsWithItsWindow checks that units of a window are not spent in the next one.
func TestLeaseEndsWithItsWindow(t *testing.T) {
	now := start.Truncate(2 * time.Second)
	store := &lender{Store: memory.New(memory.Options{Buckets: 1000})}
	lease := limit.Lease{On: true, Size: 5, TTL: limit.MaxLeaseTTL}
	l := leasing(t, store, &now, 1, lease, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "100/2s", Algorithm: "fixed_window"})
	ask := func() limit.Source { return decide(l, limit.Request{Tenant: "t", Cost: 1})[0].Source }
	// The first check fetches the bucket's state, the second takes lease units.
	if first, second, third := ask(), ask(), ask(); first != limit.SourceStore || second != limit.SourceStore || third != limit.SourceLease {
		t.Fatalf("sources %s, %s and %s, want the store twice and then the lease", first, second, third)
	}
	now = now.Add(2 * time.Second)
	if got := ask(); got != limit.SourceStore {
		t.Errorf("in the next window decided by %s", got)
	}
}

// TestExplainLease: an explanation says of a lease without effect which limit has the call decided by the store.
func TestExplainLease(t *testing.T) {
	l := leasing(t, memory.New(memory.Options{}), nil, 1, limit.Lease{On: true, Auto: true, TTL: time.Second},
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/s"},
		storetest.Spec{ID: "quota", By: []string{"tenant", "op"}, Rate: "1000/h"},
		storetest.Spec{ID: "ip", By: []string{"ip"}, Rate: "100/s"},
	)
	for _, of := range l.Limits().Limits {
		of.Lease.On = of.ID == "tenant"
	}
	for op, want := range map[string]string{"op": "none: each check asks the store for quota, which has none", "": "up to 50 units for 1s: at most 50 of 1000 units, 5.0 %, are held unused by 1 instances"} {
		var b limiter.Batch
		x := l.Explain(&b, &limit.Request{Tenant: "t", Op: op, Cost: 1})
		for _, e := range x.Limits {
			if e.Limit.ID == "tenant" && e.Lease != want {
				t.Errorf("%s: %q, want %q", op, e.Lease, want)
			}
		}
	}
}
