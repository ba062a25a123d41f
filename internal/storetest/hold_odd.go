package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// inSlot returns a request for a slot, held for an hour.
func inSlot(tenant, op, id string) limit.Request {
	return limit.Request{Tenant: tenant, Op: op, Cost: 1, ID: id, Hold: limit.HoldSlot, HoldFor: time.Hour}
}

// reusedIDs checks the effect of an id that is used for more than one request: no request
// is admitted without a charge, and no holder loses its units or slots.
func reusedIDs(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "rate", By: []string{"tenant"}, Rate: "100/366d", Algorithm: "fixed_window"},
		Spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "3"},
		Spec{ID: "user", By: []string{"tenant", "user"}, Rate: "100/366d"},
		Spec{ID: "op", By: []string{"op"}, Rate: "5/366d", Algorithm: "fixed_window"},
	))
	// A request that was refunded is decided anew.
	const tenant = "reused"
	for i := range 30 {
		d := ask(l, reserve(tenant, "x", 5))
		settle(l, limit.HoldReservation, tenant, "x", limit.ChangeCancel, 0)
		if want := i == 0; d.Allowed != want && i > 0 && d.LimitID() != "op" {
			t.Errorf("reservation %d: %+v", i, d)
		}
	}
	if d := look(l, limit.Request{Tenant: tenant, Cost: 1}); d.Remaining != 99 {
		t.Errorf("%d of 100 are left after all was cancelled", d.Remaining+1)
	}
	admitted := 0
	for range 20 {
		if ask(l, inSlot("reused-shared", "reused-shared", "x")).Allowed {
			admitted++
		}
		settle(l, limit.HoldSlot, "reused-shared", "x", limit.ChangeRelease, 0)
	}
	if admitted != 5 {
		t.Errorf("%d admitted by a limit of 5 that tenants share", admitted)
	}
	// Denied for other buckets, the same id keeps the slots that it holds.
	const other = "reused-shape"
	used := "reused-used"
	for range 5 {
		ask(l, limit.Request{Tenant: "somebody", Op: used, Cost: 1})
	}
	for i := range 10 {
		id := fmt.Sprint("k", i)
		first := ask(l, inSlot(other, "", id))
		if first.Allowed != (i < 3) {
			t.Errorf("slot %d of 3: %+v", i, first)
		}
		second := inSlot(other, used, id)
		second.Dims = []limit.Dim{{Name: "user", Value: "u"}}
		if d := ask(l, second); d.Allowed {
			t.Errorf("admitted by what is used up: %+v", d)
		}
	}
}

// repeatedGrant checks that a request that received the recorded grant of another one
// with its id keeps it, although that one is denied elsewhere and returns its units.
func repeatedGrant(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "tenant", By: []string{"tenant"}, Rate: "100/366d", Algorithm: "sliding_window"},
		Spec{ID: "op", By: []string{"tenant", "op"}, Rate: "1000/366d", Algorithm: "fixed_window"},
		Spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "3"},
		Spec{ID: "region", By: []string{"region"}, Rate: "1000/366d", Burst: "50"},
	))
	exhausted := []limit.Dim{{Name: "region", Value: "repeated-grant"}}
	ask(l, limit.Request{Tenant: "somebody", Cost: 50, Dims: exhausted})
	for _, h := range []limit.Hold{limit.HoldNone, limit.HoldReservation, limit.HoldSlot} {
		tenant := fmt.Sprint("repeated-grant-", h)
		cost, most := int64(10), 10
		if h == limit.HoldSlot {
			cost, most = 1, 3
		}
		admitted := 0
		for i := range 20 {
			req := limit.Request{Tenant: tenant, Op: "op", Cost: cost, ID: fmt.Sprint(i), Hold: h, HoldFor: time.Hour, Dims: exhausted}
			var b limiter.Batch
			b.Requests = append(b.Requests, req, req)
			b.Requests[1].Dims = nil
			l.Decide(&b)
			if b.Decisions[0].Allowed {
				t.Error("admitted by a region that is used up")
			}
			if b.Decisions[1].Allowed {
				admitted++
			}
		}
		if admitted > most {
			t.Errorf("hold %d: %d admitted, for which there is room for %d", h, admitted, most)
		}
	}
}

// resetOfAnother checks that slots stay held, and reservations can be settled, when
// another limit is reset.
func resetOfAnother(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "rate", By: []string{"tenant"}, Rate: "100/366d"},
		Spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "2"},
	))
	const tenant = "reset-another"
	ask(l, inSlot(tenant, "", "a"))
	ask(l, inSlot(tenant, "", "b"))
	if n, err := l.Reset(t.Context(), tenant, "rate"); n != 1 || err != nil {
		t.Errorf("%d buckets are reset, %v", n, err)
	}
	if ask(l, inSlot(tenant, "", "c")).Allowed {
		t.Error("a third slot of two")
	}
	if got := settle(l, limit.HoldSlot, tenant, "a", limit.ChangeRelease, 0); got != limit.OutcomeDone || !ask(l, inSlot(tenant, "", "c")).Allowed {
		t.Errorf("a slot is not given back after another limit was reset: %d", got)
	}
}

// settledCache checks that a cached denial is dropped when units come back to its bucket,
// and that units that were not charged are not settled.
func settledCache(t *testing.T, store limiter.Store) {
	l := newCachingLimiter(t, store)
	l.SetLimits(Compile(t,
		Spec{ID: "rate", By: []string{"tenant"}, Rate: "50/366d", Algorithm: "fixed_window"},
		Spec{ID: "watch", By: []string{"tenant"}, Rate: "10/366d", Mode: "shadow"},
	))
	const tenant = "settled-cache"
	for i := range 3 {
		id := fmt.Sprint(i)
		if d := ask(l, reserve(tenant, id, 50)); !d.Allowed {
			t.Errorf("round %d: %+v", i, d)
		}
		if d := ask(l, limit.Request{Tenant: tenant, Cost: 1}); d.Allowed {
			t.Errorf("a unit of none: %+v", d)
		}
		change := []limit.Change{limit.ChangeCancel, limit.ChangeCommit}[i%2]
		if got := settle(l, limit.HoldReservation, tenant, id, change, 0); got != limit.OutcomeDone {
			t.Errorf("outcome %d", got)
		}
	}
	var b limiter.Batch
	b.Requests = append(b.Requests, limit.Request{Tenant: tenant, Cost: 1})
	l.Decide(&b)
	if it := b.Items(0)[1]; it.Remaining != 9 {
		t.Errorf("a limit that watches, and had no room for what was reserved, has %d left, want 9", it.Remaining)
	}
}

// pipelineOrder checks that requests with an id keep their position in a pipeline.
func pipelineOrder(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "rate", By: []string{"tenant"}, Rate: "40/366d", Burst: "40"},
		Spec{ID: "op", By: []string{"tenant", "op"}, Rate: "1000/366d", Burst: "1000"},
	))
	for i := range 8 {
		tenant := fmt.Sprint("pipeline-order-", i)
		first := limit.Request{Tenant: tenant, Cost: 1}
		middle := reserve(tenant, "a", 39)
		if i%2 == 0 {
			middle.Hold, middle.HoldFor = limit.HoldNone, 0
		}
		last := limit.Request{Tenant: tenant, Cost: 39}
		if i%4 < 2 {
			last.Op = "op" // another run
		}
		var b limiter.Batch
		b.Requests = append(b.Requests, first, middle, limit.Request{Tenant: tenant + "x", Op: "op", Cost: 1}, last)
		l.Decide(&b)
		for j, want := range []bool{true, true, true, false} {
			if b.Decisions[j].Allowed != want {
				t.Errorf("round %d, request %d: admitted = %v", i, j, !want)
			}
		}
	}
}
