package backstop_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// acquire has the backstop decide a request for a slot, and for a unit of the other
// limits.
func acquire(b *backstop.Backstop, set *limit.Set, now int64, id string) (items []limit.Item) {
	var buf limit.Buffer
	req := limit.Request{Tenant: "t", Cost: 1, ID: id, Hold: limit.HoldSlot, HoldFor: time.Minute}
	set.Resolve(&req, nil, now, &buf)
	b.Decide(limit.DecisionTime{Now: now}, &req, buf.Items, buf.Calls)
	return buf.Items
}

func change(b *backstop.Backstop, now int64, id string, c limit.Change) bool {
	return b.Settle(limit.DecisionTime{Now: now}, &limit.Settlement{Hold: limit.HoldSlot, Tenant: "t", ID: id, Change: c})
}

// TestSlots checks that an instance grants its share of the slots, releases them, and
// lets no holder keep one for longer than its time. A denial by a rate limit holds no
// slot.
func TestSlots(t *testing.T) {
	b := backstop.New(backstop.Options{Instances: func() int { return 2 }})
	set := storetest.Compile(t,
		storetest.Spec{ID: "inflight", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "5"},
		storetest.Spec{ID: "rate", By: []string{"tenant"}, Rate: "16/366d"},
	)
	now := at.Now
	admitted := func(id string) bool {
		items := acquire(b, set, now, id)
		return items[0].Allowed && items[1].Allowed
	}
	for i, step := range []struct {
		do   string
		id   string
		want bool
	}{
		{"acquire", "a", true},
		{"acquire", "b", true},
		{"acquire", "c", false}, // two of five
		{"acquire", "b", true},  // again
		{"release", "a", true},
		{"release", "a", false},
		{"acquire", "c", true},
		{"renew", "x", false},
		{"wait", "", true},
		{"renew", "b", true},
		{"acquire", "d", false},
		{"wait", "", true},
		{"acquire", "d", true},
		{"acquire", "e", false}, // c's time is up, b's not
		{"release", "b", true},
		{"release", "d", true},
	} {
		got := true
		switch step.do {
		case "acquire":
			got = admitted(step.id)
		case "release":
			got = change(b, now, step.id, limit.ChangeRelease)
		case "renew":
			got = change(b, now, step.id, limit.ChangeRenew)
		default:
			now += 40e6
		}
		if got != step.want {
			t.Fatalf("step %d, %s %s: %v", i, step.do, step.id, got)
		}
	}
	taken := 5 // of the rate, whose share is 8
	for ; admitted(fmt.Sprint("more-", taken)); taken++ {
		change(b, now, fmt.Sprint("more-", taken), limit.ChangeRelease)
	}
	if taken != 8 {
		t.Errorf("%d of 8 units of the rate are taken", taken)
	}
	for i := range 3 {
		if it := acquire(b, set, now, fmt.Sprint("denied-", i))[0]; !it.Allowed || it.Remaining != 1 {
			t.Errorf("what was denied holds a slot: %+v", it.Verdict)
		}
	}
	if n, err := b.Reset(t.Context(), "t", "inflight"); n != 1 || err != nil {
		t.Errorf("%d buckets are reset, %v", n, err)
	}
}

// TestSlotsGivenBack checks that a slot is free again if other limits deny the request.
func TestSlotsGivenBack(t *testing.T) {
	b := backstop.New(backstop.Options{TotalRate: 1})
	set := storetest.Compile(t, storetest.Spec{ID: "inflight", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "1"})
	items := acquire(b, set, at.Now, "a")
	for i := range items {
		items[i].RecordKey = limit.Settlement{Hold: limit.HoldSlot, Tenant: "t", ID: "a"}.Key()
	}
	b.Refund(items)
	denied := acquire(b, set, at.Now, "b")[0] // by the total of one a second
	if denied.Allowed || b.Capped() != 1 {
		t.Fatalf("%+v, %d capped", denied.Verdict, b.Capped())
	}
	if it := acquire(b, set, at.Now+1e6, "c")[0]; !it.Allowed {
		t.Errorf("the slot is gone: %+v", it.Verdict)
	}
}

// TestSlotsRepeated checks that the bound of all tenants together neither denies a repeated request that holds a slot,
// nor takes its slot.
func TestSlotsRepeated(t *testing.T) {
	b := backstop.New(backstop.Options{TotalRate: 1})
	set := storetest.Compile(t, storetest.Spec{ID: "inflight", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "2"})
	if it := acquire(b, set, at.Now, "held")[0]; !it.Allowed {
		t.Fatalf("%+v", it.Verdict)
	}
	for range 2 {
		if it := acquire(b, set, at.Now, "held")[0]; !it.Allowed || it.Capped {
			t.Errorf("repeated: %+v", it.Verdict)
		}
		if it := acquire(b, set, at.Now, "other")[0]; it.Allowed || !it.Capped {
			t.Errorf("another one: %+v", it.Verdict)
		}
	}
	if !b.Settle(limit.DecisionTime{Now: at.Now}, &limit.Settlement{Hold: limit.HoldSlot, Tenant: "t", ID: "held", Change: limit.ChangeRelease}) {
		t.Error("the slot is gone")
	}
}
