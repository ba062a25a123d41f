package backstop_test

import (
	"testing"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// at is the time of all decisions in this file: nothing refills.
var at = limit.DecisionTime{Now: 1_800_000_000e6}

// ask resolves a request of a tenant and has the backstop decide it.
func ask(b *backstop.Backstop, set *limit.Set, op string, cost int64) []limit.Item {
	var buf limit.Buffer
	req := limit.Request{Tenant: "t", Op: op, Cost: cost}
	set.Resolve(&req, nil, at.Now, &buf)
	b.Decide(at, &req, buf.Items, buf.Calls)
	return buf.Items
}

// TestRefund checks that refunded units can be taken again, for every algorithm, and that
// the refund never exceeds this instance's share.
func TestRefund(t *testing.T) {
	for _, spec := range []storetest.Spec{
		{ID: "n", By: []string{"tenant"}, Rate: "10/h"},
		{ID: "n", By: []string{"tenant"}, Rate: "10/h", Algorithm: "sliding_window"},
		{ID: "n", By: []string{"tenant"}, Rate: "10/h", Algorithm: "fixed_window"},
		{ID: "n", By: []string{"tenant"}, Rate: "10/month", Algorithm: "fixed_window"},
	} {
		b, set := backstop.New(backstop.Options{Instances: func() int { return 2 }}), storetest.Compile(t, spec)
		for i, step := range []struct {
			cost   int64
			refund int // how often
			admits bool
			left   int64
		}{
			{cost: 3, refund: 1, admits: true, left: 2},
			{cost: 4, admits: true, left: 1},
			{cost: 2, left: 1},
			{cost: 1, refund: 1, admits: true, left: 0},
			{cost: 1, refund: 100, admits: true, left: 0},
			{cost: 5, admits: true, left: 0},
			{cost: 1, left: 0},
		} {
			items := ask(b, set, "", step.cost)
			if it := &items[0]; it.Allowed != step.admits || it.Remaining != step.left || it.Source != limit.SourceBackstop {
				t.Errorf("%s %s, step %d: %+v by %s, want admitted = %v with %d left", spec.Rate, spec.Algorithm, i, it.Verdict, it.Source, step.admits, step.left)
			}
			for range step.refund {
				b.Refund(items)
			}
		}
	}
}

// TestRefundOfSome checks that a refund affects only the items that it names, in buckets
// that exist.
func TestRefundOfSome(t *testing.T) {
	b, set := backstop.New(backstop.Options{Instances: func() int { return 1 }}), storetest.Compile(t,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "10/h"},
		storetest.Spec{ID: "op", By: []string{"tenant", "op"}, Rate: "10/h"},
	)
	items := ask(b, set, "x", 4)
	b.Refund(items[1:])
	again := ask(b, set, "x", 1)
	for i, want := range []int64{10 - 4 - 1, 10 - 1} {
		if it := &again[i]; it.Remaining != want {
			t.Errorf("%s has %d left, want %d", it.Limit.ID, it.Remaining, want)
		}
	}
	var never limit.Buffer
	req := limit.Request{Tenant: "never", Cost: 4}
	set.Resolve(&req, nil, at.Now, &never)
	b.Refund(never.Items)
	b.Decide(at, &req, never.Items, never.Calls)
	if it := &never.Items[0]; !it.Allowed || it.Remaining != 6 {
		t.Errorf("after a refund of what was never taken: %+v, want 6 left", it.Verdict)
	}
}
