// Package storetest is the suite that every store must pass: the same requests get the
// same answers from every kind of store.
package storetest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// Timeout is the deadline of the suite's decisions: long enough that a slow machine does
// not turn an exact answer into a degraded one.
const Timeout = 5 * time.Second

// Run runs the suite against a store that is empty, or at least has none of the suite's
// tenants.
func Run(t *testing.T, store limiter.Store) {
	for name, test := range map[string]func(*testing.T, limiter.Store){
		"ExactlyN":       exactlyN,
		"AllOrNothing":   allOrNothing,
		"Once":           once,
		"OnceAcross":     onceAcrossSlots,
		"Credit":         credit,
		"CreditMaxCost":  creditAboveMaxCost,
		"Mixed":          mixedAlgorithms,
		"Descriptors":    descriptors,
		"AllDescriptors": extendedDescriptors,
		"DeniedTwice":    deniedTwice,
		"LoweredDebt":    loweredDebt,
		"LongNames":      longNames,
		"ShortSlot":      shortSlot,
		"Reservation":    reservation,
		"ReserveOld":     reservationOfOldLimit,
		"ReusedIDs":      reusedIDs,
		"RepeatedGrant":  repeatedGrant,
		"ResetOfAnother": resetOfAnother,
		"PipelineOrder":  pipelineOrder,
		"SettledCache":   settledCache,
		"ReserveDenied":  reservationDenied,
		"ReserveCrowd":   reservationCrowd,
		"Slots":          slots,
		"SlotCrowd":      slotCrowd,
		"Own":            own,
		"Shadow":         shadow,
		"Peek":           peek,
		"TooLarge":       tooLarge,
		"SharedRefund":   sharedRefund,
		"SerialBatch":    serialBatch,
		"RaiseAndLower":  raiseAndLower,
		"CalendarWindow": calendarWindow,
		"Reset":          reset,
		"Placement":      placement,
	} {
		t.Run(name, func(t *testing.T) { test(t, store) })
	}
}

// noBackstop fails the test when the store left a decision undecided.
type noBackstop struct{ t *testing.T }

func (b noBackstop) Decide(at limit.DecisionTime, _ *limit.Request, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		b.Share(at, items[c.First:c.Last], true)
	}
}

func (b noBackstop) Peek(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call) {
	b.Decide(at, req, items, calls)
}

func (b noBackstop) Share(_ limit.DecisionTime, items []limit.Item, _ bool) {
	b.t.Errorf("the store left %s undecided", items[0].Name)
	for i := range items {
		items[i].Source = limit.SourceBackstop
	}
}

func (b noBackstop) Reset(context.Context, string, string) (int64, error) { return 0, nil }

func (b noBackstop) Forget(string) {}

func (b noBackstop) Settle(limit.DecisionTime, *limit.Settlement) bool { return false }

func (b noBackstop) Refund([]limit.Item) { b.t.Error("a refund to the backstop") }

// newLimiter returns a limiter on the store. Waits are not spread.
func newLimiter(t *testing.T, store limiter.Store, set *limit.Set) *limiter.Limiter {
	t.Helper()
	return limiter.New(options(t, store), set)
}

// newCachingLimiter returns a limiter with a deny cache, without limits yet.
func newCachingLimiter(t *testing.T, store limiter.Store) *limiter.Limiter {
	t.Helper()
	opts := options(t, store)
	opts.DenyCacheSize = 10_000
	return limiter.New(opts, nil)
}

func options(t *testing.T, store limiter.Store) limiter.Options {
	t.Helper()
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	return limiter.Options{Store: store, Backstop: noBackstop{t}, Addrs: addrs, Timeout: Timeout}
}

// ask decides one request.
func ask(l *limiter.Limiter, req limit.Request) limit.Decision {
	var b limiter.Batch
	b.Requests = append(b.Requests, req)
	l.Decide(&b)
	return b.Decisions[0]
}

// untilAdmitted repeats a request until it is admitted, and fails if that takes longer
// than a decision may.
func untilAdmitted(t *testing.T, l *limiter.Limiter, req limit.Request) {
	t.Helper()
	late := time.NewTimer(Timeout)
	defer late.Stop()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for d := ask(l, req); !d.Allowed; d = ask(l, req) {
		select {
		case <-tick.C:
		case <-late.C:
			t.Fatalf("not admitted within %s: %+v", Timeout, d)
		}
	}
}

// look peeks at one request.
func look(l *limiter.Limiter, req limit.Request) limit.Decision {
	var b limiter.Batch
	b.Requests = append(b.Requests, req)
	l.Peek(&b)
	return b.Decisions[0]
}

// counting are one limit for each algorithm, each refilling less than a unit while the
// suite runs. A window of 366 days may end while it runs, once in a year.
var counting = []Spec{
	{ID: "n", By: []string{"tenant"}, Rate: "1/366d", Burst: "35"},
	{ID: "n", By: []string{"tenant"}, Rate: "35/366d", Algorithm: "sliding_window"},
	{ID: "n", By: []string{"tenant"}, Rate: "35/366d", Algorithm: "fixed_window"},
	{ID: "n", By: []string{"tenant", "op"}, Rate: "35/366d", Algorithm: "fixed_window"},
	{ID: "n", By: []string{"tenant"}, Rate: "35/366d", Algorithm: "sliding_log"},
}

// exactlyN takes one unit each in many goroutines: as many as there are units get one.
func exactlyN(t *testing.T, store limiter.Store) {
	for i, spec := range counting {
		l := newLimiter(t, store, Compile(t, spec))
		tenant := fmt.Sprintf("exactly-%d", i)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				for range 5 {
					d := ask(l, limit.Request{Tenant: tenant, Op: "op", Cost: 1})
					if d.Source != limit.SourceStore {
						t.Errorf("decided by %s", d.Source)
					}
					if d.Allowed {
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		if admitted.Load() != 35 {
			t.Errorf("%s by %v: admitted %d, want exactly 35", spec.Algorithm, spec.By, admitted.Load())
		}
	}
}

// allOrNothing checks that a request that one limit denies takes nothing from the others.
func allOrNothing(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "roomy", By: []string{"tenant"}, Rate: "1000/366d", Algorithm: "fixed_window"},
		Spec{ID: "tight", By: []string{"tenant", "op"}, Rate: "7/366d", Algorithm: "fixed_window"},
	))
	admitted := int64(0)
	for i := range 40 {
		if ask(l, limit.Request{Tenant: "all", Op: fmt.Sprint("op", i%3), Cost: 1 + int64(i%2)}).Allowed {
			admitted += 1 + int64(i%2)
		}
	}
	if d := look(l, limit.Request{Tenant: "all", Cost: 1}); d.Remaining != 1000-admitted-1 {
		t.Errorf("the roomy limit has %d left, want %d after %d units were admitted", d.Remaining, 1000-admitted-1, admitted)
	}
}

// shadow checks that limits on trial change no answer, request by request.
func shadow(t *testing.T, store limiter.Store) {
	enforced := Spec{ID: "real", By: []string{"tenant"}, Rate: "20/366d", Algorithm: "sliding_window"}
	trial := Spec{ID: "trial", By: []string{"tenant"}, Rate: "3/366d", Algorithm: "sliding_window", Mode: "shadow"}
	alone, beside := newLimiter(t, store, Compile(t, enforced)), newLimiter(t, store, Compile(t, enforced, trial))
	wouldDeny := 0
	for i := range 60 {
		cost := 1 + int64(i%4)
		want := ask(alone, limit.Request{Tenant: "shadow-alone", Cost: cost})
		var b limiter.Batch
		b.Requests = append(b.Requests, limit.Request{Tenant: "shadow-beside", Cost: cost})
		beside.Decide(&b)
		got := b.Decisions[0]
		if got.Allowed != want.Allowed || got.Remaining != want.Remaining || got.LimitID() != want.LimitID() {
			t.Errorf("request %d: with a shadow limit %+v, without %+v", i, got, want)
		}
		for _, it := range b.Items(0) {
			if it.Limit.Mode == limit.ModeShadow && it.Denies() {
				wouldDeny++
			}
		}
	}
	if wouldDeny == 0 {
		t.Error("the shadow limit never would have denied")
	}
}

func peek(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t, Spec{ID: "n", By: []string{"tenant"}, Rate: "2/366d", Algorithm: "fixed_window"}))
	req := limit.Request{Tenant: "peek", Cost: 2}
	for range 3 {
		if d := look(l, req); !d.Allowed || d.Remaining != 0 {
			t.Errorf("peek: %+v, want it admitted with nothing left", d)
		}
	}
	if d := ask(l, req); !d.Allowed {
		t.Errorf("after peeking: %+v, want it admitted", d)
	}
	if d := look(l, req); d.Allowed || d.RetryAfter <= 0 {
		t.Errorf("peek at an empty bucket: %+v, want a wait", d)
	}
}

func tooLarge(t *testing.T, store limiter.Store) {
	for i, spec := range counting {
		l := newLimiter(t, store, Compile(t, spec))
		req := limit.Request{Tenant: fmt.Sprintf("large-%d", i), Op: "op", Cost: 36}
		if d := ask(l, req); d.Allowed || d.RetryAfter != bucket.Never || d.Remaining != 35 {
			t.Errorf("cost 36 of 35: %+v, want never, and 35 left", d)
		}
		req.Cost = 35
		if d := ask(l, req); !d.Allowed {
			t.Errorf("then cost 35: %+v, want it admitted", d)
		}
	}
}

// sharedRefund checks that a request denied in one hash slot keeps nothing in another,
// either way.
func sharedRefund(t *testing.T, store limiter.Store) {
	for _, algorithm := range []string{"token_bucket", "sliding_window", "fixed_window"} {
		burst := ""
		rate := "30/366d"
		if algorithm == "token_bucket" {
			rate, burst = "1/366d", "30"
		}
		l := newLimiter(t, store, Compile(t,
			Spec{ID: "mine", By: []string{"tenant"}, Rate: "10/366d", Algorithm: "fixed_window"},
			Spec{ID: "all-" + algorithm, By: []string{"region"}, Rate: rate, Burst: burst, Algorithm: algorithm},
		))
		dims := []limit.Dim{{Name: "region", Value: algorithm}}
		for i := range 60 {
			ask(l, limit.Request{Tenant: fmt.Sprint(algorithm, i%6), Dims: dims, Cost: 1})
		}
		// 30 units for all, at most 10 each: 60 requests in turn admit 5 each.
		left := int64(0)
		for i := range 6 {
			left += look(l, limit.Request{Tenant: fmt.Sprint(algorithm, i), Cost: 1}).Remaining + 1
		}
		if left != 6*10-30 {
			t.Errorf("%s: the tenants have %d units left, want 30", algorithm, left)
		}
	}
}

// serialBatch checks that the requests of a batch are admitted and denied as if one came
// after the other, also if a denied one held units for a short time. (The remaining units
// that an admitted one reports may be less by those units.)
func serialBatch(t *testing.T, store limiter.Store) {
	set := Compile(t,
		Spec{ID: "mine", By: []string{"tenant"}, Rate: "6/366d", Algorithm: "fixed_window"},
		Spec{ID: "region", By: []string{"region"}, Rate: "2/366d", Algorithm: "fixed_window"},
	)
	l := newLimiter(t, store, set)
	requests := func(run string) []limit.Request {
		var out []limit.Request
		for i := range 24 {
			dims := []limit.Dim{{Name: "region", Value: fmt.Sprint(run, (i/3)%4)}}
			out = append(out, limit.Request{Tenant: fmt.Sprint("serial-", run, i%2), Dims: dims, Cost: 1 + int64(i%3)/2})
		}
		return out
	}
	var want []limit.Decision
	for _, req := range requests("single") {
		want = append(want, ask(l, req))
	}
	var b limiter.Batch
	b.Requests = append(b.Requests, requests("batch")...)
	l.Decide(&b)
	for i, got := range b.Decisions {
		if got.Allowed != want[i].Allowed || !got.Allowed && got.LimitID() != want[i].LimitID() {
			t.Errorf("request %d: in a batch %v by %s, alone %v by %s", i, got.Allowed, got.LimitID(), want[i].Allowed, want[i].LimitID())
		}
	}
}

// raiseAndLower checks that raising and lowering a limit take effect at once.
func raiseAndLower(t *testing.T, store limiter.Store) {
	for _, algorithm := range []string{"token_bucket", "sliding_window", "fixed_window"} {
		low := Compile(t, Spec{ID: "n", By: []string{"tenant"}, Rate: "1/h", Algorithm: algorithm})
		high := Compile(t, Spec{ID: "n", By: []string{"tenant"}, Rate: "100/s", Algorithm: algorithm})
		l := newLimiter(t, store, low)
		req := limit.Request{Tenant: "raise-" + algorithm, Cost: 1}
		if d := ask(l, req); !d.Allowed {
			t.Fatalf("%s: the first: %+v", algorithm, d)
		}
		if d := ask(l, req); d.Allowed {
			t.Fatalf("%s: the second: %+v", algorithm, d)
		}
		l.SetLimits(high)
		if d := ask(l, req); !d.Allowed {
			// A bucket has nothing yet of its new rate; a window has 99 units.
			if algorithm != "token_bucket" || d.RetryAfter > 10 {
				t.Errorf("%s: raised to 100/s: %+v, want at most 10 ms, and none for a window", algorithm, d)
			}
			untilAdmitted(t, l, req)
		}
		req.Tenant = "lower-" + algorithm
		if d := ask(l, limit.Request{Tenant: req.Tenant, Cost: 50}); !d.Allowed {
			t.Errorf("%s: 50 of 100: %+v", algorithm, d)
		}
		l.SetLimits(low)
		d := ask(l, req)
		if d2 := ask(l, req); d.Allowed && d2.Allowed || d2.Limit != 1 {
			t.Errorf("%s: lowered to 1/h: %+v, then %+v, want at most one admitted", algorithm, d, d2)
		}
	}
}

func calendarWindow(t *testing.T, store limiter.Store) {
	for _, unit := range []string{"day", "month"} {
		l := newLimiter(t, store, Compile(t, Spec{
			ID: "n", By: []string{"tenant"}, Rate: "5/" + unit, Algorithm: "fixed_window", Zone: "Pacific/Kiritimati",
		}))
		req := limit.Request{Tenant: "calendar-" + unit, Cost: 5}
		if d := ask(l, req); !d.Allowed {
			t.Errorf("5 of 5 in a %s: %+v", unit, d)
		}
		d := ask(l, req)
		if d.Allowed || d.RetryAfter <= 0 || d.RetryAfter > 31*86400_000 {
			t.Errorf("the next: %+v, want a wait until the %s ends", d, unit)
		}
	}
}

func reset(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "a", By: []string{"tenant"}, Rate: "1/366d"},
		Spec{ID: "b", By: []string{"tenant", "op"}, Rate: "1/366d"},
		Spec{ID: "all", By: []string{"region"}, Rate: "100/366d", Burst: "35"},
	))
	dims := []limit.Dim{{Name: "region", Value: "reset"}}
	req := limit.Request{Tenant: "reset*", Op: "x", Dims: dims, Cost: 1}
	for _, step := range []struct {
		tenant, id string
		want       int64
	}{{"reset*", "", 2}, {"reset*", "a", 1}, {"reset*", "b", 1}, {"", "all", 1}} {
		if step.id != "b" && step.id != "all" && !ask(l, req).Allowed {
			t.Errorf("before reset %q: denied", step.id)
		}
		n, err := l.Reset(t.Context(), step.tenant, step.id)
		if err != nil || n != step.want {
			t.Errorf("reset %q %q: %d buckets, %v, want %d", step.tenant, step.id, n, err, step.want)
		}
		if step.id == "a" && ask(l, req).Allowed {
			t.Error("after resetting a alone, b should deny")
		}
	}
	ask(l, req)
	if n, err := l.Reset(t.Context(), "reset", ""); n != 0 || err != nil {
		t.Errorf("another tenant's name removed %d buckets, %v", n, err)
	}
	if n, err := l.Reset(t.Context(), "reset*", ""); n != 2 || err != nil {
		t.Errorf("a name that looks like a pattern removed %d buckets, %v, want 2", n, err)
	}
}

// placement checks that a limit's buckets are where its `by` places them, in one decision
// that mixes fields and keys.
func placement(t *testing.T, store limiter.Store) {
	set := Compile(t,
		Spec{ID: "own", By: []string{"tenant", "op"}, Rate: "3/366d"},
		Spec{ID: "field", By: []string{"tenant"}, Rate: "4/366d"},
		Spec{ID: "own2", By: []string{"tenant", "user"}, Rate: "5/366d"},
		Spec{ID: "field2", By: []string{"tenant"}, Rate: "6/366d", Algorithm: "sliding_window"},
	)
	l := newLimiter(t, store, set)
	req := limit.Request{Tenant: "placed", Op: "op", Dims: []limit.Dim{{Name: "user", Value: "u"}}, Cost: 1}
	for i, want := range []int64{2, 1, 0} {
		var b limiter.Batch
		b.Requests = append(b.Requests, req)
		l.Decide(&b)
		for j, it := range b.Items(0) {
			if left := int64(3+j) - int64(i) - 1; it.Remaining != left || !it.Allowed {
				t.Errorf("request %d: %s has %d left, want %d", i, it.Limit.ID, it.Remaining, left)
			}
		}
		if d := b.Decisions[0]; d.Remaining != want || d.LimitID() != "own" {
			t.Errorf("request %d: bound by %s with %d left, want own with %d", i, d.LimitID(), d.Remaining, want)
		}
	}
}
