package memory_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

func TestConformance(t *testing.T) { storetest.Run(t, memory.New(memory.Options{})) }

// TestSweepWithinACall: a bucket that is as good as untouched, because all it
// took was given back, is charged by a call that makes a new bucket too.
func TestSweepWithinACall(t *testing.T) {
	s := memory.New(memory.Options{})
	set := storetest.Compile(t,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "9/h", Algorithm: "fixed_window"},
		storetest.Spec{ID: "op", By: []string{"tenant", "op"}, Rate: "9/h", Algorithm: "fixed_window"},
	)
	at := limit.Moment{Now: 1_800_000_000e6}
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
