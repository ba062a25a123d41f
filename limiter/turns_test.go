package limiter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestTurnsEnd checks that the waits for a limit do not depend on its parameters before a
// change, or on denials before a reset, and are not longer than its full time.
func TestTurnsEnd(t *testing.T) {
	now := start
	set := func(rate string) *limit.Set {
		return storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: rate}, storetest.Spec{ID: "op", By: []string{"op"}, Rate: rate})
	}
	l := limiter.New(limiter.Options{
		Store: memory.New(memory.Options{}), Timeout: time.Second, RetryJitter: 30 * time.Second, Now: func() time.Time { return now },
	}, set("10/h"))
	tenants := 0
	tenant := func() limit.Request { return limit.Request{Tenant: "t", Cost: 1} }
	shared := func() limit.Request {
		tenants++
		return limit.Request{Tenant: fmt.Sprint(tenants), Op: "op", Cost: 1}
	}
	crowd := func(req func() limit.Request) (longest int64) {
		for range 200 {
			if d := decide(l, req())[0]; !d.Allowed {
				longest = max(longest, d.RetryAfter)
			}
		}
		return longest
	}
	for name, tc := range map[string]struct {
		req   func() limit.Request
		reset func() (int64, error)
	}{
		"a tenant's": {tenant, func() (int64, error) { return l.Reset(t.Context(), "t", "n") }},
		"a shared":   {shared, func() (int64, error) { return l.Reset(t.Context(), "", "op") }},
	} {
		l.SetLimits(set("10/h"))
		if wait := crowd(tc.req); wait < 6*60_000 {
			t.Fatalf("%s limit of 10/h: at most %d ms", name, wait)
		}
		l.SetLimits(set("10/s"))
		// A unit comes in 100 ms, all of them in 1 s.
		if wait := crowd(tc.req); wait > 100+1000 {
			t.Errorf("%s limit raised to 10/s: a wait of %d ms", name, wait)
		}
		if _, err := tc.reset(); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			decide(l, tc.req())
		}
		if d := decide(l, tc.req())[0]; d.Allowed || d.RetryAfter > 100+100 {
			t.Errorf("%s limit, the first who is denied after a reset: %+v", name, d)
		}
	}
}
