package limiter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// distant is a store in memory whose answers take time.
type distant struct {
	*memory.Store
	takes time.Duration
}

// Start implements limiter.Store.
func (s *distant) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(uint64), token uint64) func() bool {
	answered := false
	answer := time.AfterFunc(s.takes, func() { done(token) })
	return func() bool {
		if answered = !answer.Stop(); answered {
			s.Take(at, items, calls)
		}
		return false
	}
}

// TestDecideWithin decides with a store that answers within a duration, behind it, and not before the deadline:
// Await has the decisions, in time, also of batches that are used again.
func TestDecideWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, timeout = 2 * time.Millisecond, 5 * time.Millisecond
		store := &distant{Store: memory.New(memory.Options{})}
		l := limiter.New(limiter.Options{Store: store, Timeout: timeout, Backstop: backstop.New(backstop.Options{})},
			storetest.Compile(t, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/h"}))
		var b limiter.Batch
		for range 3 {
			for _, c := range []struct {
				takes, within, whole time.Duration
				source               limit.Source
			}{
				{0, 0, 0, limit.SourceStore},
				{most - 1, most - 1, most - 1, limit.SourceStore},
				{most + 1, most, most + 1, limit.SourceStore},
				{timeout - 1, most, timeout - 1, limit.SourceStore},
				{timeout + 1, most, timeout, limit.SourceBackstop},
			} {
				store.takes = c.takes
				b.Reset()
				b.Requests = append(b.Requests, limit.Request{Tenant: "a", Cost: 1})
				begin := time.Now()
				decided := l.DecideWithin(&b, most)
				if took := time.Since(begin); took != c.within || decided && c.takes > most {
					t.Errorf("a store that takes %s: decided %t after %s", c.takes, decided, took)
				}
				if !decided {
					l.Await(&b)
				}
				if took := time.Since(begin); took != c.whole || len(b.Decisions) != 1 || b.Decisions[0].Source != c.source {
					t.Errorf("a store that takes %s: %+v after %s", c.takes, b.Decisions, took)
				}
				time.Sleep(time.Second)
			}
		}
	})
}
