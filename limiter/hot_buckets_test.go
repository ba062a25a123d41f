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
	about := func(got limiter.Hot, bucket, id string, rate float64) {
		t.Helper()
		// Some hundred samples: a third is more than six times their deviation.
		if got.Bucket != bucket || got.Limit != id || got.Rate < rate*2/3 || got.Rate > rate*4/3 {
			t.Errorf("got %+v, want %s of %s, about %.0f a second", got, bucket, id, rate)
		}
	}
	hot, denied := l.Top(2)
	t.Logf("hot %+v, denied %+v", hot, denied)
	if len(hot) != 2 || len(denied) != 1 {
		t.Fatalf("hot %+v, denied %+v", hot, denied)
	}
	about(hot[0], "lg:t:{hot}:n;t", "n", 3200)
	about(denied[0], "lg:t:{denied}:few;t;user=u", "few", 800)
	now = now.Add(time.Minute)
	if hot, denied = l.Top(10); len(hot)+len(denied) > 0 {
		t.Errorf("a minute later: hot %+v, denied %+v", hot, denied)
	}
}
