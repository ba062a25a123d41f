package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// reserve returns a request for a reservation under an id.
func reserve(tenant, id string, cost int64) limit.Request {
	return limit.Request{Tenant: tenant, Op: "op", Cost: cost, ID: id, Hold: limit.HoldReservation, HoldFor: time.Minute}
}

// settle settles an id.
func settle(l *limiter.Limiter, h limit.Hold, tenant, id string, c limit.Change, units int64) limit.Outcome {
	return l.Settle(&limit.Settlement{Hold: h, Tenant: tenant, ID: id, Change: c, Units: units}, true)
}

// reservation checks that the estimate is replaced by the units used, once.
func reservation(t *testing.T, store limiter.Store) {
	for i, spec := range counting {
		spec.By = []string{"tenant", "op"}
		fixed := Spec{ID: "calls", By: []string{"tenant"}, Rate: "100/366d", Algorithm: "fixed_window", Cost: "1"}
		l := newLimiter(t, store, Compile(t, spec, fixed))
		tenant := fmt.Sprintf("reserve-{%d}", i)
		const r, commit, cancel = limit.HoldReservation, limit.ChangeCommit, limit.ChangeCancel
		for n, step := range []struct {
			id          string
			estimate    int64 // 0 for none
			admits      bool
			change      limit.Change
			units       int64
			outcome     limit.Outcome
			left, calls int64
		}{
			{"surplus", 10, true, commit, 4, limit.OutcomeDone, 31, 99},
			{"surplus", 10, true, commit, 9, limit.OutcomeAlready, 31, 99}, // both are repeated
			{"surplus", 0, true, cancel, 0, limit.OutcomeAlready, 31, 99},
			{"shortfall", 5, true, commit, 9, limit.OutcomeDone, 22, 98},
			{"exact", 2, true, commit, 2, limit.OutcomeDone, 20, 97},
			{"nothing used", 8, true, commit, 0, limit.OutcomeDone, 20, 96},
			{"cancelled", 20, true, cancel, 0, limit.OutcomeDone, 20, 96},
			{"denied", 21, false, commit, 1, limit.OutcomeUnknown, 20, 96},
			{"never asked for", 0, false, cancel, 0, limit.OutcomeUnknown, 20, 96},
			{"debt", 20, true, commit, 1000, limit.OutcomeDone, 0, 95},
			{"in debt", 1, false, commit, 1, limit.OutcomeUnknown, 0, 95},
		} {
			if step.estimate > 0 {
				if d := ask(l, reserve(tenant, step.id, step.estimate)); d.Allowed != step.admits {
					t.Fatalf("%s, step %d, %s: %+v", spec.Algorithm, n, step.id, d)
				}
			}
			if got := settle(l, r, tenant, step.id, step.change, step.units); got != step.outcome {
				t.Errorf("%s, step %d, %s: outcome %d, want %d", spec.Algorithm, n, step.id, got, step.outcome)
			}
			var b limiter.Batch
			b.Requests = append(b.Requests, limit.Request{Tenant: tenant, Op: "op", Cost: 1})
			l.Peek(&b)
			for _, it := range b.Items(0) {
				left, want := it.Remaining, step.left
				if it.Limit.ID == fixed.ID {
					want = step.calls
				}
				if it.Allowed {
					left++
				}
				if left != want {
					t.Errorf("%s, step %d, %s: %s has %d left, want %d", spec.Algorithm, n, step.id, it.Limit.ID, left, want)
				}
			}
		}
		owes(t, l, tenant, 35)
		if got := settle(l, r, tenant+"x", "surplus", commit, 1); got != limit.OutcomeUnknown {
			t.Errorf("another tenant's: outcome %d", got)
		}
	}
}

// owes checks that a tenant's bucket has its maximum debt: after a refund of that many units
// it is empty.
func owes(t *testing.T, l *limiter.Limiter, tenant string, units int64) {
	t.Helper()
	var b limiter.Batch
	back := limit.Request{Tenant: tenant, Op: "op", Cost: units}
	l.Credit(&b, &back)
	if d := ask(l, limit.Request{Tenant: tenant, Op: "op", Cost: 1}); d.Allowed {
		t.Errorf("after a debt was given back: %+v", d)
	}
	back.Cost = 2
	l.Credit(&b, &back)
	if d := ask(l, limit.Request{Tenant: tenant, Op: "op", Cost: 2}); !d.Allowed {
		t.Errorf("after two more units were given back: %+v", d)
	}
}

// reservationOfOldLimit checks that a reservation under one limit is settled after the
// limit has changed.
func reservationOfOldLimit(t *testing.T, store limiter.Store) {
	for i, spec := range counting {
		for _, step := range []struct{ capacity, actual int64 }{{100, 4}, {100, 18}, {20, 4}, {20, 18}} {
			next, left := spec, step.capacity-step.actual
			if next.Burst == "" {
				next.Rate = fmt.Sprintf("%d/366d", step.capacity)
			} else {
				next.Rate, next.Burst = "3/366d", fmt.Sprint(step.capacity)
				left = min(35-step.actual, step.capacity) // a larger burst adds nothing at once
			}
			l := newLimiter(t, store, Compile(t, spec))
			tenant := fmt.Sprintf("reserve-old-%d-%d-%d", i, step.capacity, step.actual)
			ask(l, reserve(tenant, "x", 10))
			l.SetLimits(Compile(t, next))
			outcome := settle(l, limit.HoldReservation, tenant, "x", limit.ChangeCommit, step.actual)
			if d := look(l, limit.Request{Tenant: tenant, Op: "op", Cost: 1}); outcome != limit.OutcomeDone || d.Remaining+1 != left {
				t.Errorf("%s of 35 becomes one of %d, of which %d are used: outcome %d, %d left, want %d",
					spec.Algorithm, step.capacity, step.actual, outcome, d.Remaining+1, left)
			}
		}
	}
}

// reservationDenied checks that units granted in one hash slot to a request that another
// one denied are no reservation.
func reservationDenied(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "tenant", By: []string{"tenant"}, Rate: "35/366d", Algorithm: "sliding_log"},
		Spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "3"},
		Spec{ID: "region", By: []string{"region"}, Rate: "2/366d", Algorithm: "sliding_log"},
	))
	for i := range 5 {
		req := limit.Request{
			Tenant: "reserve-denied", Cost: 1, Hold: limit.HoldSlot, HoldFor: time.Minute, ID: fmt.Sprint(i),
			Dims: []limit.Dim{{Name: "region", Value: "reserve-denied"}},
		}
		d := ask(l, req)
		want := limit.OutcomeUnknown
		if i < 2 {
			want = limit.OutcomeDone
		}
		if got := settle(l, req.Hold, req.Tenant, req.ID, limit.ChangeRelease, 0); got != want || d.Allowed != (i < 2) {
			t.Errorf("request %d: %+v, outcome %d", i, d, got)
		}
	}
	if d := look(l, limit.Request{Tenant: "reserve-denied", Cost: 1}); d.Remaining != 35-2-1 {
		t.Errorf("%d of 35 are left after two were admitted", d.Remaining+1)
	}
}

// acquired returns the slots that remain after the acquisition of a step, or -1 if it is denied.
func acquired(t *testing.T, step int, d limit.Decision) int64 {
	if d.LimitID() != "inflight" {
		t.Errorf("step %d: bound by %s", step, d.LimitID())
	}
	if d.Allowed {
		return d.Remaining
	}
	if d.RetryAfter <= 0 || d.RetryAfter > time.Minute.Milliseconds() {
		t.Errorf("step %d: to be tried again after %d ms", step, d.RetryAfter)
	}
	return -1
}

// slots checks that no more slots are held than the limit, and that released slots can be
// taken again.
func slots(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "inflight", By: []string{"tenant", "op"}, Algorithm: "concurrency", Slots: "2"},
		Spec{ID: "rate", By: []string{"tenant"}, Rate: "9/366d", Algorithm: "fixed_window"},
	))
	const tenant = "slots;%"
	acquire := func(id string) limit.Decision {
		return ask(l, limit.Request{Tenant: tenant, Op: "op", Cost: 1, ID: id, Hold: limit.HoldSlot, HoldFor: time.Minute})
	}
	change := func(c limit.Change, id string) limit.Outcome { return settle(l, limit.HoldSlot, tenant, id, c, 0) }
	for n, step := range []struct {
		do   string
		id   string
		want int64 // remaining slots after an acquisition, otherwise the outcome; -1 for a denial
	}{
		{"acquire", "a", 1},
		{"acquire", "a", 1}, // again
		{"acquire", "b", 0},
		{"acquire", "c", -1},
		{"renew", "a", 1},
		{"renew", "c", 0},
		{"release", "a", 1},
		{"release", "a", 2},
		{"renew", "a", 2},
		{"acquire", "c", 0},
		{"acquire", "a", -1}, // it was released
		{"release", "b", 1},
		{"acquire", "a", 0},
		{"release", "a", 1},
		{"release", "x", 0},
	} {
		var got int64
		switch step.do {
		case "renew":
			got = int64(change(limit.ChangeRenew, step.id))
		case "release":
			got = int64(change(limit.ChangeRelease, step.id))
		default:
			got = acquired(t, n, acquire(step.id))
		}
		if got != step.want {
			t.Errorf("step %d, %s %s: %d, want %d", n, step.do, step.id, got, step.want)
		}
	}
	// A check needs no slot, and the four admitted acquisitions took their units of the
	// rate.
	if d := ask(l, limit.Request{Tenant: tenant, Op: "op", Cost: 1}); !d.Allowed || d.Remaining != 9-4-1 {
		t.Errorf("a check: %+v", d)
	}
	if n, err := l.Reset(t.Context(), tenant, ""); err != nil || n != 2 {
		t.Errorf("%d buckets are reset, %v, want 2", n, err)
	}
	if got := change(limit.ChangeRenew, "c"); got != limit.OutcomeUnknown {
		t.Errorf("a slot is renewed after a reset: %d", got)
	}
}
