package limiter_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

type spy struct {
	lender
	refunded []limit.Item
	hook     func()
	lose     bool
	clock    func() time.Time
}

func (s *spy) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	if s.clock != nil {
		at.Now = s.clock().UnixMicro()
	}
	s.lender.Take(at, items, calls)
	if s.hook != nil {
		s.hook()
	}
	if s.lose {
		for _, c := range calls {
			for i := c.First; i < c.Last; i++ {
				items[i].Source, items[i].Verdict, items[i].LeaseGranted = limit.SourceNone, bucket.Verdict{}, 0
			}
		}
	}
}

func (s *spy) Refund(at limit.DecisionTime, items []limit.Item) {
	s.refunded = append(s.refunded, items...)
	s.lender.Refund(at, items)
}

func newSpy() *spy { return &spy{lender: lender{Store: memory.New(memory.Options{Buckets: 10000})}} }

func TestRefundDropsLeaseWanted(t *testing.T) {
	now := start
	s := newSpy()
	l := leasing(t, s, &now, 1, limit.Lease{On: true, Size: 20, TTL: time.Second},
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/366d"},
		storetest.Spec{ID: "ip", By: []string{"region"}, Rate: "1/366d"})
	dims := []limit.Dim{{Name: "region", Value: "r"}}
	decide(l, limit.Request{Tenant: "a", Cost: 1, Dims: dims})
	decide(l, limit.Request{Tenant: "b", Cost: 1, Dims: dims})
	for _, it := range s.refunded {
		if it.LeaseWanted != 0 {
			t.Errorf("%s is refunded with LeaseWanted = %d", it.Name, it.LeaseWanted)
		}
	}
}

// TestLateRepliesDrain checks the units that are charged when replies come too late: each
// call charges its lease units.
func TestLateRepliesDrain(t *testing.T) {
	now := start
	s := newSpy()
	s.lose = true
	l := leasing(t, s, &now, 1, limit.Lease{On: true, Size: 50, TTL: time.Second}, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/366d"})
	for range 15 {
		now = now.Add(5 * time.Millisecond)
		decide(l, limit.Request{Tenant: "t", Cost: 1})
	}
	var b limiter.Batch
	e := l.Explain(&b, &limit.Request{Tenant: "t", Cost: 1})
	used := 1000 - e.Limits[0].Item.Remaining - 1
	if used > 15+50 {
		t.Errorf("15 checks whose replies came late have used up %d of 1000 units", used)
	}
}

func TestDenyAfterHandBack(t *testing.T) {
	now := start
	s := newSpy()
	l := leasing(t, s, &now, 1, limit.Lease{On: true, Size: 20, TTL: time.Second}, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "400/366d"})
	for range 2 { // the first check fetches the bucket's state, the second takes lease units
		decide(l, limit.Request{Tenant: "t", Cost: 1})
	}
	now = now.Add(900 * time.Millisecond)
	if d := decide(l, limit.Request{Tenant: "t", Cost: 398})[0]; d.Allowed {
		t.Fatalf("nothing is held: %+v", d)
	}
	now = now.Add(200 * time.Millisecond) // the lease has expired
	handBack(t, l)
	if d := decide(l, limit.Request{Tenant: "t", Cost: 398})[0]; !d.Allowed {
		t.Errorf("398 are left: %+v", d)
	}
}

func TestLeaseBound(t *testing.T) {
	now := start
	s := newSpy()
	l := leasing(t, s, &now, 1, limit.Lease{On: true, Size: 50, TTL: time.Second}, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/366d"})
	for range 12 {
		decide(l, limit.Request{Tenant: "t", Cost: 1})
	}
	decide(l, limit.Request{Tenant: "t", Cost: 40})
	handBack(t, l)
	held := int64(0)
	for _, it := range s.refunded {
		held += it.Cost
	}
	if held > 50 {
		t.Errorf("%d units of 1000 were held, the bound is 50", held)
	}
}

// TestStaleLease checks a request of the old limits for lease units that is under way
// while new limits are loaded and all leases are returned. Its units are not spent under
// the new limits, and the new limits are leased all the same.
func TestStaleLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSpy()
		sp := storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/366d"}
		lease := limit.Lease{On: true, Size: 20, TTL: time.Second}
		l := leasing(t, s, nil, 1, lease, sp)
		sp.Rate = "2000/366d"
		set := storetest.Compile(t, sp)
		set.Limits[0].Lease = lease
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = l.Run(ctx) }()
		req := limit.Request{Tenant: "t", Cost: 1}
		decide(l, req) // fetches the bucket's state
		s.hook = func() {
			s.hook = nil
			l.SetLimits(set)
			synctest.Wait() // Run has returned the leases
		}
		decide(l, req) // takes lease units
		if s.hook != nil {
			t.Fatal("no call to the store")
		}
		if d := decide(l, req)[0]; d.Source != limit.SourceStore {
			t.Errorf("by the new limits: %+v", d)
		}
		local := 0
		const checks = 500 // in five seconds: the old lease ends within two of its TTLs
		for range checks {
			time.Sleep(10 * time.Millisecond) // of the bubble's time
			if decide(l, req)[0].Source == limit.SourceLease {
				local++
			}
		}
		if local < checks/2 {
			t.Errorf("%d of %d checks of the new limits from leases", local, checks)
		}
		cancel()
	})
}

func TestResetLocal(t *testing.T) {
	s := &crowded{counted: counted{Store: memory.New(memory.Options{Buckets: 1000})}}
	l := placed(t, s, limit.PlacementLocal)
	for range 5 {
		decide(l, limit.Request{Tenant: "t", Cost: 1})
	}
	n, err := l.Reset(context.Background(), "t", "")
	if d := decide(l, limit.Request{Tenant: "t", Cost: 1})[0]; !d.Allowed {
		t.Errorf("after RL.RESET (%d, %v): %+v", n, err, d)
	}
}

// TestResetWhileAsking checks a request that is under way when the tenant is reset.
func TestResetWhileAsking(t *testing.T) {
	now := start
	s := newSpy()
	l := leasing(t, s, &now, 1, limit.Lease{On: true, Size: 50, TTL: time.Second}, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/366d"})
	s.hook = func() {
		s.hook = nil
		_, _ = l.Reset(context.Background(), "t", "")
		decide(l, limit.Request{Tenant: "t", Cost: 1}) // opens the lease anew
	}
	decide(l, limit.Request{Tenant: "t", Cost: 1})
	admitted := int64(1)
	for range 1100 {
		if decide(l, limit.Request{Tenant: "t", Cost: 1})[0].Allowed {
			admitted++
		}
	}
	if admitted > 1000 {
		t.Errorf("%d admitted after the reset, of 1000", admitted)
	}
}
