package storetest

import (
	"fmt"
	"sync"
	"testing"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// once checks that a request with an id is charged once, however often and by whichever
// caller it is repeated, and gets the same answer.
func once(t *testing.T, store limiter.Store) {
	for i, spec := range counting {
		l := newLimiter(t, store, Compile(t, spec))
		tenant := fmt.Sprint("once-", i)
		req := func(id string, cost int64) limit.Request {
			return limit.Request{Tenant: tenant, Op: "op", Cost: cost, ID: id}
		}
		left := func() int64 { return look(l, limit.Request{Tenant: tenant, Op: "op", Cost: 1}).Remaining + 1 }
		first := ask(l, req("a", 5))
		ask(l, req("b", 7))
		var wg sync.WaitGroup
		for range 20 {
			wg.Go(func() {
				if again := ask(l, req("a", 5)); again.Allowed != first.Allowed || again.Remaining != first.Remaining || again.Source != limit.SourceStore {
					t.Errorf("the first time %+v, then %+v", first, again)
				}
			})
		}
		wg.Wait()
		if n := left(); n != 35-5-7 {
			t.Errorf("%s: %d left after 5 and 7 of 35 were asked for, once", spec.Algorithm, n)
		}
		for range 2 {
			if ask(l, req("c", 30)).Allowed {
				t.Error("30 units of 23 are admitted")
			}
		}
		ask(l, req("a", 6)) // another cost is another request
		if n := left(); n != 35-5-7-6 {
			t.Errorf("%s: %d left, want %d", spec.Algorithm, n, 35-5-7-6)
		}
		if other := ask(l, limit.Request{Tenant: tenant + "x", Op: "op", Cost: 5, ID: "a"}); other.Remaining != 30 {
			t.Errorf("the same id of another tenant: %+v", other)
		}
	}
}

// onceAcrossSlots checks the same of requests with buckets in several hash slots: the
// refund of a denied request is not repeated when the request is.
func onceAcrossSlots(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t,
		Spec{ID: "tenant", By: []string{"tenant"}, Rate: "35/366d", Algorithm: "fixed_window"},
		Spec{ID: "op", By: []string{"op"}, Rate: "10/366d", Algorithm: "fixed_window"},
	))
	req := func(id string) limit.Request {
		return limit.Request{Tenant: "once-across", Op: "once-across", Cost: 8, ID: id}
	}
	for _, id := range []string{"a", "b", "a", "b", "b", "a"} {
		if d := ask(l, req(id)); d.Allowed != (id == "a") {
			t.Errorf("%s: %+v", id, d)
		}
	}
	if d := look(l, limit.Request{Tenant: "once-across", Cost: 1}); d.Remaining != 35-8-1 {
		t.Errorf("the tenant has %d left after one of two was admitted, want %d", d.Remaining+1, 35-8)
	}
}

// own checks inline limits: exact, changed from call to call, with requests for nothing
// and for more than any bucket holds, in keys of any bytes.
func own(t *testing.T, store limiter.Store) {
	l := newLimiter(t, store, Compile(t, Spec{ID: "n", By: []string{"tenant"}, Rate: "1/366d"}))
	with := func(count, capacity int64) *limit.Limit {
		made, err := limit.NewInlineLimit(count, bucket.MaxPeriod, capacity)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	small, large := with(1, 6), with(2, 60)
	for _, key := range []string{"k", "{k}", "%7Bk%7D", "\x00\xff\r\n ", "k;"} {
		if was, err := l.Forget(t.Context(), key); was || err != nil {
			t.Errorf("key %q is there before it was asked for: %v", key, err)
		}
		defer func() {
			was, err := l.Forget(t.Context(), key)
			if d := look(l, limit.Request{Inline: small, Key: key}); !was || err != nil || d.Remaining != 6 {
				t.Errorf("key %q is forgotten = %v, %v, and has %d left", key, was, err, d.Remaining)
			}
		}()
		for i, step := range []struct {
			of        *limit.Limit
			cost      int64
			admits    bool
			remaining int64
		}{
			{small, 4, true, 2},
			{small, 0, true, 2},
			{small, 3, false, 2},
			{small, bucket.MaxCapacity + 1, false, 2},
			{large, 2, true, 0}, // a larger burst adds nothing at once
			{large, 0, true, 0},
			{small, 1, false, 0},
		} {
			req := limit.Request{Inline: step.of, Key: key, Cost: step.cost}
			d := limit.Decision{}
			if step.cost == 0 {
				d = look(l, req)
			} else {
				d = ask(l, req)
			}
			if d.Allowed != step.admits || d.Remaining != step.remaining || d.Source != limit.SourceStore {
				t.Errorf("key %q, step %d: %+v", key, i, d)
			}
		}
	}
}
