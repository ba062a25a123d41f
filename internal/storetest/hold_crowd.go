package storetest

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// callers is the number of concurrent callers, and turns the number of requests of each.
const (
	callers = 200
	turns   = 10
)

// reservationCrowd reserves and settles at random, concurrently. Some callers repeat a
// call, as if the answer had been lost, and some never settle. In the end the buckets
// have lost the units used or, for those never settled, estimated.
func reservationCrowd(t *testing.T, store limiter.Store) {
	for i, spec := range counting {
		all := Spec{ID: "all", By: []string{"tenant"}, Rate: "1000000/366d", Algorithm: "fixed_window"}
		if spec.Burst != "" {
			spec.Rate, spec.Burst = "30/366d", "900"
		} else {
			spec.Rate = "900/366d"
		}
		l := newLimiter(t, store, Compile(t, spec, all))
		tenant := fmt.Sprint("reserve-crowd-", i)
		var used, admitted atomic.Int64
		var wg sync.WaitGroup
		for c := range callers {
			random := rand.New(rand.NewPCG(Seed(t), uint64(c)))
			wg.Go(func() {
				for turn := range turns {
					cost := useSome(t, l, random, tenant, fmt.Sprint(c, "-", turn))
					if used.Add(cost); cost > 0 {
						admitted.Add(1)
					}
				}
			})
		}
		wg.Wait()
		var b limiter.Batch
		b.Requests = append(b.Requests, limit.Request{Tenant: tenant, Op: "op", Cost: 1})
		l.Peek(&b)
		for _, it := range b.Items(0) {
			left := it.Remaining
			if it.Allowed {
				left++
			}
			if want := max(0, it.Limit.Params.Capacity-used.Load()); left != want {
				t.Errorf("%s, %s: %d left, by the model %d after %d of %d were admitted", spec.Algorithm, it.Limit.ID, left, want, admitted.Load(), callers*turns)
			}
		}
		if n := admitted.Load(); n == 0 || n == callers*turns {
			t.Errorf("%s: %d of %d admitted: the bucket was not contended", spec.Algorithm, n, callers*turns)
		}
	}
}

// useSome makes a reservation, maybe twice, and settles it in some way, or not. It
// returns the units that are charged in the end.
func useSome(t *testing.T, l *limiter.Limiter, random *rand.Rand, tenant, id string) int64 {
	estimate := 1 + random.Int64N(9)
	admitted := false
	for range 1 + random.IntN(2) {
		// A denial may be followed by an admission, never the reverse.
		d := ask(l, reserve(tenant, id, estimate))
		if admitted && !d.Allowed {
			t.Errorf("admitted, and then %+v", d)
		}
		admitted = admitted || d.Allowed
	}
	actual := random.Int64N(2 * estimate)
	change := limit.ChangeCommit
	switch {
	case !admitted:
		return 0
	case random.IntN(4) == 0: // never settled
		return estimate
	case random.IntN(4) == 0:
		change, actual = limit.ChangeCancel, 0
	}
	var wg sync.WaitGroup
	var done atomic.Int64
	for range 1 + random.IntN(2) {
		wg.Go(func() {
			switch got := settle(l, limit.HoldReservation, tenant, id, change, actual); got {
			case limit.OutcomeDone:
				done.Add(1)
			case limit.OutcomeUnknown:
				t.Errorf("%s is unknown", id)
			}
		})
	}
	wg.Wait()
	if done.Load() != 1 {
		t.Errorf("%s was settled %d times", id, done.Load())
	}
	return actual
}

// slotCrowd acquires and releases slots concurrently. Some callers never release theirs,
// and some renew them. There are never more held than the limit, and no slot is lost for
// longer than its time.
func slotCrowd(t *testing.T, store limiter.Store) {
	const slots, tenant = 10, "slot-crowd"
	l := newLimiter(t, store, Compile(t, Spec{ID: "inflight", By: []string{"tenant"}, Algorithm: "concurrency", Slots: fmt.Sprint(slots)}))
	var mu sync.Mutex // guards held
	var held []holding
	var wg sync.WaitGroup
	for c := range callers {
		random := rand.New(rand.NewPCG(Seed(t), uint64(c)))
		wg.Go(func() {
			for turn := range turns {
				if h, ok := holdOne(l, random, tenant, fmt.Sprint(c, "-", turn)); ok {
					mu.Lock()
					held = append(held, h)
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	if most := mostAtOnce(held); most > slots {
		t.Errorf("%d of %d slots were held at once", most, slots)
	} else {
		t.Logf("%d slots were taken in %d attempts, at most %d of %d at once", len(held), callers*turns, most, slots)
	}
	if len(held) <= slots {
		t.Errorf("only %d slots were taken: nothing was given back", len(held))
	}
	for i := range slots {
		req := limit.Request{Tenant: tenant, Cost: 1, ID: fmt.Sprint("end-", i), Hold: limit.HoldSlot, HoldFor: time.Hour}
		d := ask(l, req)
		if !d.Allowed {
			if d.RetryAfter > slotTime.Milliseconds() {
				t.Errorf("slot %d is held for %s at most, and free in %d ms", i, slotTime, d.RetryAfter)
			}
			<-time.After(time.Duration(d.RetryAfter) * time.Millisecond)
			d = ask(l, req)
		}
		if !d.Allowed {
			t.Errorf("slot %d is lost: %+v", i, d)
		}
	}
}

// slotTime is how long a slot is held without a release.
const slotTime = 150 * time.Millisecond

// holding is a time in which a caller held a slot for sure.
type holding struct{ from, to time.Time }

// holdOne acquires a slot, if there is one, and releases it or not.
func holdOne(l *limiter.Limiter, random *rand.Rand, tenant, id string) (h holding, ok bool) {
	sent := time.Now()
	if !ask(l, limit.Request{Tenant: tenant, Cost: 1, ID: id, Hold: limit.HoldSlot, HoldFor: slotTime}).Allowed {
		return h, false
	}
	h = holding{time.Now(), sent.Add(slotTime)}
	what := limit.Settlement{Hold: limit.HoldSlot, Tenant: tenant, ID: id, Change: limit.ChangeRenew, For: slotTime}
	if random.IntN(4) == 0 {
		if sent = time.Now(); l.Settle(&what, true) == limit.OutcomeDone {
			h.to = sent.Add(slotTime)
		}
	}
	if random.IntN(8) == 0 {
		return h, true // never released
	}
	if now := time.Now(); now.Before(h.to) {
		h.to = now
	}
	what.Change = limit.ChangeRelease
	l.Settle(&what, true)
	return h, true
}

// mostAtOnce returns the maximum number of slots held at the same time.
func mostAtOnce(held []holding) (most int) {
	type event struct {
		at    time.Time
		delta int
	}
	var events []event
	for _, h := range held {
		if h.to.After(h.from) {
			events = append(events, event{h.from, 1}, event{h.to, -1})
		}
	}
	slices.SortFunc(events, func(a, b event) int { return cmp.Or(a.at.Compare(b.at), a.delta-b.delta) })
	now := 0
	for _, e := range events {
		now += e.delta
		most = max(most, now)
	}
	return most
}
