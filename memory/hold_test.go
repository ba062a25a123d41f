package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/memory"
)

// holder sends a store requests with holds, at chosen times.
type holder struct {
	store *memory.Store
	set   *limit.Set
	now   int64
}

func (h *holder) hold(kind limit.Hold, tenant, op, id string, ttl time.Duration) bool {
	var b limit.Buffer
	h.set.Resolve(&limit.Request{Tenant: tenant, Op: op, Cost: 1, ID: id, Hold: kind, HoldFor: ttl}, nil, h.now, &b)
	h.store.Take(limit.DecisionTime{Now: h.now}, b.Items, b.Calls)
	return b.Items[0].Allowed
}

func (h *holder) end(kind limit.Hold, tenant, id string, c limit.Change) limit.Outcome {
	outcome, _ := h.store.Settle(limit.DecisionTime{Now: h.now}, &limit.Settlement{Hold: kind, Tenant: tenant, ID: id, Change: c})
	return outcome
}

// TestAllSlotsOfATenant checks that all slots that a limit may have can be held and
// returned.
func TestAllSlotsOfATenant(t *testing.T) {
	h := &holder{memory.New(memory.Options{}), storetest.Compile(t, storetest.Spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "10000"}), 1_800_000_000e6}
	for i := range bucket.MaxSlots {
		if !h.hold(limit.HoldSlot, "t", "", fmt.Sprint(i), time.Hour) {
			t.Fatalf("slot %d is denied", i)
		}
	}
	if h.hold(limit.HoldSlot, "t", "", "one more", time.Hour) {
		t.Errorf("slot %d is granted", bucket.MaxSlots+1)
	}
	for i := range bucket.MaxSlots {
		if got := h.end(limit.HoldSlot, "t", fmt.Sprint(i), limit.ChangeRelease); got != limit.OutcomeDone {
			t.Fatalf("slot %d: outcome %d", i, got)
		}
	}
	var b limit.Buffer
	h.set.Resolve(&limit.Request{Tenant: "t", Cost: 1, ID: "again", Hold: limit.HoldSlot, HoldFor: time.Hour}, nil, h.now, &b)
	h.store.Take(limit.DecisionTime{Now: h.now}, b.Items, b.Calls)
	if it := b.Items[0]; !it.Allowed || it.Remaining != bucket.MaxSlots-1 {
		t.Errorf("after all were released: %+v", it.Verdict)
	}
	if h.store.Forgotten() > 0 {
		t.Errorf("%d records deleted", h.store.Forgotten())
	}
}

// TestHoldsForgotten checks that without room the tenant with the most holds loses its
// own, in the order of their expiry, and that expired holds take no room.
func TestHoldsForgotten(t *testing.T) {
	h := &holder{memory.New(memory.Options{}), storetest.Compile(t, storetest.Spec{ID: "rate", By: []string{"tenant"}, Rate: "1000000/s"}), 1_800_000_000e6}
	const reservation = limit.HoldReservation
	for i := range 200 {
		h.hold(reservation, fmt.Sprint("bystander-", i), "", "x", time.Hour)
	}
	h.hold(reservation, "many", "", "long", time.Hour)
	for i := range 20_000 { // of which 10 at a time have not expired
		h.now += 100_000
		h.hold(reservation, "many", "", fmt.Sprint(i), time.Second)
		if i%1000 == 0 {
			h.now -= 100_000_000 // so that the long ones have not expired either
		}
	}
	if h.store.Forgotten() > 0 {
		t.Errorf("%d records deleted while there was room", h.store.Forgotten())
	}
	for i := range 220_000 {
		h.hold(reservation, "many", "", fmt.Sprint("flood-", i), time.Minute)
	}
	if h.store.Forgotten() == 0 {
		t.Error("no record deleted: the bound does not hold")
	}
	if got := h.end(reservation, "many", "long", limit.ChangeCancel); got != limit.OutcomeDone {
		t.Errorf("the record that expires last is deleted first: outcome %d", got)
	}
	for i := range 200 {
		if got := h.end(reservation, fmt.Sprint("bystander-", i), "x", limit.ChangeCancel); got != limit.OutcomeDone {
			t.Errorf("bystander %d: %d", i, got)
		}
	}
}

// TestSlotsAreBuckets checks that slots take room as buckets do, and that the bound holds
// for them.
func TestSlotsAreBuckets(t *testing.T) {
	h := &holder{memory.New(memory.Options{Buckets: 640}), storetest.Compile(t, storetest.Spec{ID: "slots", By: []string{"tenant", "op"}, Algorithm: "concurrency", Slots: "10000"}), 1_800_000_000e6}
	held := 0
	for i := range 5000 {
		if h.hold(limit.HoldSlot, "t", fmt.Sprint(i%3), fmt.Sprint(i), time.Hour) {
			held++
		}
	}
	if n := h.store.Len(); n > 640 || h.store.Overflows() == 0 || held != n {
		t.Errorf("%d buckets of 640, %d slots are held, %d decisions for lack of room", n, held, h.store.Overflows())
	}
}

// TestOverflowOfLogs checks that the overflow bucket of a sliding log admits no more
// units after a denial by another limit.
func TestOverflowOfLogs(t *testing.T) {
	m, now := memory.New(memory.Options{Buckets: 1}), int64(1_800_000_000e6)
	take := func(cost int64, op string, specs ...storetest.Spec) []limit.Item {
		var b limit.Buffer
		storetest.Compile(t, specs...).Resolve(&limit.Request{Tenant: "t", Op: op, Cost: cost}, nil, now, &b)
		m.Take(limit.DecisionTime{Now: now}, b.Items, b.Calls)
		return b.Items
	}
	log := func(rate string) storetest.Spec {
		return storetest.Spec{ID: "log", By: []string{"tenant", "op"}, Rate: rate, Algorithm: "sliding_log"}
	}
	count := func(rate, ops string) (n int) {
		for i := range 50 {
			if take(1, fmt.Sprint(ops, i), log(rate))[0].Allowed {
				n++
			}
		}
		return n
	}
	take(1, "", storetest.Spec{ID: "filler", By: []string{"tenant"}, Rate: "1/366d"})
	if n := count("10/h", "a"); n != 10 {
		t.Errorf("%d of 10 admitted", n)
	}
	now += 800e6
	take(2, "z", storetest.Spec{ID: "one", By: []string{"tenant"}, Rate: "1/366d"}, log("9/h"))
	if n := count("9/h", "b"); n != 2 {
		t.Errorf("800 s later %d admitted, and 2 were earned", n)
	}
}
