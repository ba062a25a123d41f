package limiter_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestTop checks that Top reports the buckets with the most checks and those with the
// most denials, with approximate rates, and drops old windows.
func TestTop(t *testing.T) {
	t.Run("batch", func(t *testing.T) { testTop(t, func(l *limiter.Limiter, req limit.Request) { decide(l, req) }) })
	t.Run("fast path", func(t *testing.T) {
		var f limiter.FastPath
		testTop(t, func(l *limiter.Limiter, req limit.Request) {
			if l.BeginFast(&f); !f.Decide(&req) {
				decide(l, req)
			}
		})
	})
}

func testTop(t *testing.T, decide func(*limiter.Limiter, limit.Request)) {
	t.Helper()
	now := start
	addrs, _ := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	l := limiter.New(limiter.Options{
		Store: memory.New(memory.Options{}), Addrs: addrs, Timeout: time.Second, Now: func() time.Time { return now },
	}, storetest.Compile(t,
		storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1000000/s"},
		storetest.Spec{ID: "few", By: []string{"tenant", "user"}, Rate: "1/h"},
	))
	const seconds = 15
	for second := range seconds {
		for i := range 6400 {
			req := limit.Request{Tenant: fmt.Sprint("rare", second, i), Cost: 1}
			switch {
			case i%2 == 0:
				req.Tenant = "hot"
			case i%8 == 1:
				req.Tenant, req.Dims = "denied", []limit.Dim{{Name: "user", Value: "u"}}
			}
			decide(l, req)
		}
		now = now.Add(time.Second)
	}
	about := func(got limiter.HotBucket, bucket, id string, rate float64) {
		t.Helper()
		// Some hundred samples: a third is more than six times their deviation.
		if got.Bucket != bucket || got.Limit != id || got.Rate < rate*2/3 || got.Rate > rate*4/3 {
			t.Errorf("got %+v, want %s of %s, about %.0f a second", got, bucket, id, rate)
		}
	}
	top := l.Top(2)
	t.Logf("%+v", top)
	if len(top.Hot) != 2 || len(top.Denied) != 1 {
		t.Fatalf("got %+v", top)
	}
	about(top.Hot[0], "lg:t:{hot}:n;t", "n", 3200)
	about(top.Denied[0], "lg:t:{denied}:few;t;user=u", "few", 800)
	now = now.Add(time.Minute)
	if top = l.Top(10); len(top.Hot)+len(top.Denied)+len(top.Operations) > 0 {
		t.Errorf("a minute later: %+v", top)
	}
}

// TestTopOfFew checks that Top counts every decision while there are few, by bucket and by
// operation, and the denials of shadow limits.
func TestTopOfFew(t *testing.T) {
	now := start
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second, Now: func() time.Time { return now }}, storetest.Compile(t,
		storetest.Spec{ID: "enforced", By: []string{"tenant"}, Rate: "30/h"},
		storetest.Spec{ID: "trial", By: []string{"tenant", "op"}, Rate: "20/h", Mode: "shadow"},
	))
	l.Top(1) // begins a window
	for i := range 50 {
		decide(l, limit.Request{Tenant: "t", Op: "GET /a", Cost: 1})
		if i < 3 {
			decide(l, limit.Request{Tenant: "u", Op: "GET /b", Cost: 1})
		}
	}
	now = now.Add(time.Second)
	top := l.Top(10)
	want := limiter.Top{
		Hot: []limiter.HotBucket{
			{"lg:t:{t}:enforced;t", "enforced", 50},
			{"lg:t:{t}:trial;t;op=GET /a", "trial", 50},
			{"lg:t:{u}:enforced;t", "enforced", 3},
			{"lg:t:{u}:trial;t;op=GET /b", "trial", 3},
		},
		Denied:    []limiter.HotBucket{{"lg:t:{t}:enforced;t", "enforced", 20}},
		WouldDeny: []limiter.HotBucket{{"lg:t:{t}:trial;t;op=GET /a", "trial", 30}},
		Operations: []limiter.HotOperation{
			{"GET /a", 50, 20, 30}, {"GET /b", 3, 0, 0},
		},
	}
	if !reflect.DeepEqual(top, want) {
		t.Errorf("got  %+v\nwant %+v", top, want)
	}
}

// TestTopBounds checks that Top keeps no more names than its bound, whatever a client sends, and
// that a frequent one stays among them.
func TestTopBounds(t *testing.T) {
	now := start
	l := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second, Now: func() time.Time { return now }}, storetest.Compile(t,
		storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "10/h"},
	))
	for i := range 3000 {
		decide(l, limit.Request{Tenant: fmt.Sprint("t", i), Op: fmt.Sprint("GET /", i), Cost: 1})
		decide(l, limit.Request{Tenant: "frequent", Op: "GET /frequent", Cost: 1})
	}
	top := l.Top(1000)
	if !top.AtLeast {
		t.Error("the rates are no bounds from below")
	}
	if len(top.Hot) > 256 || len(top.Operations) > 256 {
		t.Errorf("%d buckets and %d operations", len(top.Hot), len(top.Operations))
	}
	if top.Hot[0].Bucket != "lg:t:{frequent}:n;t" || top.Operations[0].Operation != "GET /frequent" {
		t.Errorf("first are %+v and %+v", top.Hot[0], top.Operations[0])
	}
}
