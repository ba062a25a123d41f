package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// decideAll decides requests in one batch.
func decideAll(l *limiter.Limiter, requests ...limit.Request) []limit.Decision {
	b := limiter.Batch{Requests: requests}
	l.Decide(&b)
	return b.Decisions
}

// mixedAlgorithms checks that calls of several algorithms that the store decides together
// are decided independently: no call affects the next.
func mixedAlgorithms(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "bucket", By: []string{"tenant"}, Rate: "1000/h"},
		Spec{ID: "quota", By: []string{"tenant"}, Rate: "100000/month", Algorithm: "fixed_window"},
		Spec{ID: "sliding", By: []string{"tenant", "user"}, Rate: "500/h", Algorithm: "sliding_window"},
		Spec{ID: "region", By: []string{"region"}, Rate: "2/366d", Algorithm: "sliding_log"},
		Spec{ID: "op", By: []string{"op"}, Rate: "900/h"},
	))
	for _, together := range []int{1, 2, 6} {
		region := limit.Dim{Name: "region", Value: fmt.Sprint("mixed-", together)}
		var got []limit.Decision
		for n := 0; n < 6; n += together {
			var requests []limit.Request
			for i := range together {
				tenant := fmt.Sprintf("mixed-%d-%d", together, (n+i)%2)
				requests = append(requests, limit.Request{Tenant: tenant, Op: "mixed", Cost: 1, Dims: []limit.Dim{{Name: "user", Value: "u"}, region}})
			}
			got = append(got, decideAll(l, requests...)...)
		}
		for i, d := range got {
			if d.Allowed != (i < 2) || d.Source != limit.SourceStore || !d.Allowed && d.LimitID() != "region" {
				t.Errorf("%d together, request %d: %+v bound by %s", together, i, d, d.LimitID())
			}
		}
	}
}

// creditAboveMaxCost checks that a refund larger than the maximum cost of a request
// returns exactly that number of units.
func creditAboveMaxCost(t *testing.T, store limiter.Store) {
	for i, spec := range counting {
		spec.MaxCost = "5"
		l := newLimiter(t, store, Compile(t, spec))
		req := limit.Request{Tenant: fmt.Sprint("credit-max-", i), Op: "op", Cost: 5}
		for range 7 {
			if d := ask(l, req); !d.Allowed {
				t.Fatalf("%s: %+v", spec.Algorithm, d)
			}
		}
		back := req
		back.Cost = 6
		var b limiter.Batch
		l.Credit(&b, &back)
		if d := look(l, req); d.Remaining != 6-5 {
			t.Errorf("%s: %d left after a refund of 6, want 6", spec.Algorithm, d.Remaining+5)
		}
	}
}

// deniedTwice checks that a request that is made twice at once under one ID, and denied
// both times in another hash slot, takes nothing.
func deniedTwice(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "tenant", By: []string{"tenant"}, Rate: "35/366d", Algorithm: "fixed_window"},
		Spec{ID: "op", By: []string{"op"}, Rate: "1/366d", Algorithm: "fixed_window"},
	))
	const tenant = "denied-twice"
	if d := ask(l, limit.Request{Tenant: tenant + "-first", Op: tenant, Cost: 1}); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	left := func() int64 { return look(l, limit.Request{Tenant: tenant, Cost: 1}).Remaining + 1 }
	for _, hold := range []limit.Hold{limit.HoldNone, limit.HoldReservation} {
		req := limit.Request{Tenant: tenant, Op: tenant, Cost: 1, ID: fmt.Sprint("x", hold), Hold: hold, HoldFor: time.Minute}
		for _, d := range decideAll(l, req, req, req) {
			if d.Allowed {
				t.Errorf("%+v", d)
			}
		}
		if n := left(); n != 35 {
			t.Errorf("hold %d: %d of 35 are left after three denials in one pipeline", hold, n)
		}
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() { ask(l, req) })
		}
		wg.Wait()
		if n := left(); n != 35 {
			t.Errorf("hold %d: %d of 35 are left after twenty denials at once", hold, n)
		}
	}
}

// loweredDebt checks that a debt under a large limit is reduced to the maximum debt of
// the small limit that replaces it.
func loweredDebt(t *testing.T, store limiter.Store) {
	for _, algorithm := range []string{"token_bucket", "sliding_window", "fixed_window"} {
		l := newLimiter(t, store, Compile(t, Spec{ID: "n", By: []string{"tenant"}, Rate: "1000000/m", Algorithm: algorithm}))
		tenant := "lowered-" + algorithm
		ask(l, reserve(tenant, "x", 1))
		if got := settle(l, limit.HoldReservation, tenant, "x", limit.ChangeCommit, bucket.MaxCost); got != limit.OutcomeDone {
			t.Fatalf("%s: outcome %d", algorithm, got)
		}
		l.SetLimits(Compile(t, Spec{ID: "n", By: []string{"tenant"}, Rate: "100/h", Algorithm: algorithm}))
		d := ask(l, limit.Request{Tenant: tenant, Cost: 1})
		if d.Allowed || d.Source != limit.SourceStore || d.RetryAfter <= 0 || d.RetryAfter > 2*time.Hour.Milliseconds() {
			t.Errorf("%s: in debt after the limit was lowered: %+v", algorithm, d)
		}
		if algorithm == "token_bucket" { // an hour for 100 units of debt, and 36 s for one more
			if want := (time.Hour + 36*time.Second).Milliseconds(); d.RetryAfter > want || d.RetryAfter < want-time.Minute.Milliseconds() {
				t.Errorf("%s: a wait of %d ms, want %d", algorithm, d.RetryAfter, want)
			}
		}
	}
}

// longNames checks that a request with many buckets of the longest names is settled like
// any other, and that no other call is affected.
func longNames(t *testing.T, store limiter.Store) {
	var by []string
	req := limit.Request{Tenant: strings.Repeat("{", 200) + "long", Op: "op", Cost: 3, ID: "x", Hold: limit.HoldReservation, HoldFor: time.Minute}
	for i := range limit.MaxDims {
		name := fmt.Sprintf("dimension-%d", i)
		by = append(by, name)
		req.Dims = append(req.Dims, limit.Dim{Name: name, Value: strings.Repeat("}", limit.MaxNameBytes)})
	}
	var specs []Spec
	for i := range 7 {
		specs = append(specs, Spec{ID: fmt.Sprint("n", i), By: append([]string{"tenant"}, by...), Rate: "10/366d"})
	}
	l := newLimiter(t, store, Compile(t, specs...))
	for n, want := range []int64{7, 7} {
		if d := ask(l, req); !d.Allowed || d.Remaining != want {
			t.Fatalf("%+v", d)
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { ask(l, limit.Request{Tenant: fmt.Sprint("beside-long-", n, "-", i), Cost: 1, Dims: req.Dims}) })
		}
		if got := settle(l, req.Hold, req.Tenant, req.ID, limit.ChangeCancel, 0); got != limit.OutcomeDone {
			t.Errorf("a cancel: outcome %d", got)
		}
		wg.Wait()
	}
}

// shortSlot checks that a request whose slot has expired before another hash slot denied
// it returns the other units that it took.
func shortSlot(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "100"},
		Spec{ID: "rate", By: []string{"tenant"}, Rate: "35/366d", Algorithm: "fixed_window"},
		Spec{ID: "op", By: []string{"op"}, Rate: "1/366d", Algorithm: "fixed_window"},
	))
	const tenant = "short-slot"
	ask(l, limit.Request{Tenant: tenant + "-first", Op: tenant, Cost: 1})
	for i := range 30 {
		req := limit.Request{Tenant: tenant, Op: tenant, Cost: 1, ID: fmt.Sprint(i), Hold: limit.HoldSlot, HoldFor: limit.MinHold}
		if d := ask(l, req); d.Allowed || d.Source != limit.SourceStore {
			t.Fatalf("request %d: %+v", i, d)
		}
	}
	if d := look(l, limit.Request{Tenant: tenant, Cost: 1}); d.Remaining+1 != 35 {
		t.Errorf("%d of 35 are left after 30 denials", d.Remaining+1)
	}
}
