package memory_test

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

func TestConformance(t *testing.T) { storetest.Run(t, memory.New(memory.Options{})) }

// TestSweepWithinACall checks that a bucket that equals an untouched one, because all its
// units were refunded, is charged by a call that also makes a new bucket.
func TestSweepWithinACall(t *testing.T) {
	s := memory.New(memory.Options{})
	set := storetest.Compile(t,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "9/h", Algorithm: "fixed_window"},
		storetest.Spec{ID: "op", By: []string{"tenant", "op"}, Rate: "9/h", Algorithm: "fixed_window"},
	)
	at := limit.DecisionTime{Now: 1_800_000_000e6}
	take := func(op string) []limit.Item {
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: "t", Op: op, Cost: 2}, nil, at.Now, &b)
		s.Take(at, b.Items, b.Calls)
		return b.Items
	}
	s.Refund(at, take(""))
	take("x")
	if left := take("y")[0].Remaining; left != 5 {
		t.Errorf("the tenant has %d left after two charges of 2 of 9, want 5", left)
	}
}

// TestDecisionsOutOfOrder checks that two callers that read their clocks before the lock,
// on both sides of a window's end, together get no more than the two windows have.
func TestDecisionsOutOfOrder(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "sliding_window", "token_bucket"} {
		s := memory.New(memory.Options{})
		set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1000/1s", Algorithm: algorithm})
		boundary := int64(1_800_000_000e6)
		admitted := 0
		for i := range 10_000 {
			now := boundary - 50 + int64(i%2)*100
			var b limit.Buffer
			set.Resolve(&limit.Request{Tenant: "t", Cost: 1}, nil, now, &b)
			s.Take(limit.DecisionTime{Now: now}, b.Items, b.Calls)
			if b.Items[0].Allowed {
				admitted++
			}
		}
		if admitted > 1001 {
			t.Errorf("%s: %d admitted around the end of a window of 1000", algorithm, admitted)
		}
	}
}

// TestOneTenantFillsTheStore checks that the bound holds for the store as a whole,
// however its buckets are spread over shards.
func TestOneTenantFillsTheStore(t *testing.T) {
	const bound = 6400
	s := memory.New(memory.Options{Buckets: bound})
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant", "user"}, Rate: "1/h"})
	at := limit.DecisionTime{Now: 1_800_000_000e6}
	for i := range bound {
		var b limit.Buffer
		user := []limit.Dim{{Name: "user", Value: fmt.Sprint(i)}}
		set.Resolve(&limit.Request{Tenant: "t", Dims: user, Cost: 1}, nil, at.Now, &b)
		s.Take(at, b.Items, b.Calls)
		if !b.Items[0].Allowed {
			t.Fatalf("user %d was denied", i)
		}
	}
	if s.Overflows() != 0 || s.Len() != bound {
		t.Errorf("%d overflows and %d buckets", s.Overflows(), s.Len())
	}
}
