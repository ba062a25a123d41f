package limiter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestRetryAfterFailClosed checks that a grant that was refunded, because a limit failed
// closed, is not replayed: the retry is charged.
func TestRetryAfterFailClosed(t *testing.T) {
	dark := "region"
	store := &failingStore{Store: memory.New(memory.Options{})}
	store.fails = func(items []limit.Item) bool { return items[0].Limit.ID == dark }
	l, _ := newLimiter(t, store, 0,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "3/h"},
		storetest.Spec{ID: "region", By: []string{"region"}, Rate: "1000/h", OnError: "closed"},
	)
	admitted := 0
	for i := range 20 {
		req := limit.Request{Tenant: "t", Cost: 1, ID: fmt.Sprint("job", i), Dims: []limit.Dim{{Name: "region", Value: "eu"}}}
		dark = "region"
		decide(l, req)
		dark = ""
		if decide(l, req)[0].Allowed {
			admitted++
		}
	}
	if admitted > 3 {
		t.Errorf("admitted %d of a limit of 3/h", admitted)
	}
}

// TestRetryAfterLocalDenial checks that a grant that was refunded, because this
// instance's share denied, is not replayed either.
func TestRetryAfterLocalDenial(t *testing.T) {
	addrs, _ := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	set := storetest.Compile(t,
		storetest.Spec{ID: "hour", By: []string{"tenant"}, Rate: "3/h"},
		storetest.Spec{ID: "local", By: []string{"region"}, Rate: "1/s"},
	)
	for _, x := range set.Limits {
		if x.ID == "local" {
			x.Store = limit.PlacementLocal
		}
	}
	now := start
	l := limiter.New(limiter.Options{
		Store: memory.New(memory.Options{}), Backstop: backstop.New(backstop.Options{}), Addrs: addrs, Timeout: time.Second,
		Now: func() time.Time { return now },
	}, set)
	admitted := 0
	req := limit.Request{Tenant: "other", Cost: 1, Dims: []limit.Dim{{Name: "region", Value: "eu"}}}
	for i := range 20 {
		decide(l, req) // another request uses up the local second
		mine := req
		mine.Tenant, mine.ID = "t", fmt.Sprint("job", i)
		decide(l, mine)
		now = now.Add(1500 * time.Millisecond)
		if decide(l, mine)[0].Allowed {
			admitted++
		}
		now = now.Add(1500 * time.Millisecond)
	}
	if admitted > 3 {
		t.Errorf("admitted %d of a limit of 3/h", admitted)
	}
}

// TestRetryHeldForAMoment checks that a request with an ID is decided again if it was
// denied only because of units that another request held for a short time.
func TestRetryHeldForAMoment(t *testing.T) {
	l, _ := newLimiter(t, memory.New(memory.Options{}), 0,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1/h"},
		storetest.Spec{ID: "region", By: []string{"region"}, Rate: "1/h"},
	)
	eu := []limit.Dim{{Name: "region", Value: "eu"}}
	decide(l, limit.Request{Tenant: "other", Cost: 1, Dims: eu}) // uses up the region's unit
	for _, id := range []string{"", "x"} {
		ds := decide(l, limit.Request{Tenant: "t" + id, Cost: 1, Dims: eu}, limit.Request{Tenant: "t" + id, Cost: 1, ID: id})
		t.Logf("id %q: %+v", id, ds[1])
		again := decide(l, limit.Request{Tenant: "t" + id, Cost: 1, ID: "x"})[0]
		t.Logf("   again: %+v", again)
		if !ds[1].Allowed {
			t.Errorf("id %q: denied, and nothing is taken", id)
		}
	}
}

// TestResetKeepsAnswersOfOthers checks that a reset deletes the records of that tenant
// alone.
func TestResetKeepsAnswersOfOthers(t *testing.T) {
	l, _ := newLimiter(t, memory.New(memory.Options{}), 0, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "10/h"})
	req := limit.Request{Tenant: "a", Cost: 1, ID: "x"}
	decide(l, req)
	if _, err := l.Reset(context.Background(), "b", ""); err != nil {
		t.Fatal(err)
	}
	if d := decide(l, req)[0]; d.Remaining != 9 {
		t.Errorf("charged twice: %+v", d)
	}
}

// TestInlineLimitsOverflowApart checks that inline limits do not change each other's
// bucket when the memory store is full.
func TestInlineLimitsOverflowApart(t *testing.T) {
	s := memory.New(memory.Options{Buckets: 1})
	l, _ := newLimiter(t, s, 0, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "10/h"})
	big, _ := limit.NewInlineLimit(1000, 3600_000_000, 1000)
	small, _ := limit.NewInlineLimit(1, 3600_000_000, 1)
	ask := func(o *limit.Limit, k string) limit.Decision {
		return decide(l, limit.Request{Inline: o, Key: k, Cost: 1})[0]
	}
	ask(big, "first")
	ask(big, "a")
	ask(small, "b")
	if d := ask(big, "c"); !d.Allowed {
		t.Errorf("a key with a burst of 1000 is denied because another one has a burst of 1: %+v", d)
	}
}
