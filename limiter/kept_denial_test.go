package limiter_test

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// answersOnce is a store in memory that does not answer the calls of requests which are decided again.
type answersOnce struct {
	*memory.Store
	again bool
}

// Start implements limiter.Store.
func (s *answersOnce) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	s.Store.Take(at, items, calls)
	return nil
}

// Take implements limiter.Store.
func (s *answersOnce) Take(limit.DecisionTime, []limit.Item, []limit.Call) { s.again = true }

// TestKeptDenial: a request that is decided again, and gets no answer from the store, stays denied by a bucket to
// which nothing returns. The backstop decides one whose only denial was by units that have returned.
func TestKeptDenial(t *testing.T) {
	store := &answersOnce{Store: memory.New(memory.Options{})}
	l := limiter.New(limiter.Options{Store: store, Backstop: backstop.New(backstop.Options{}), Timeout: time.Second}, storetest.Compile(t,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "5/366d"},
		storetest.Spec{ID: "region", By: []string{"region"}, Rate: "5/366d"},
	))
	region := []limit.Dim{{Name: "region", Value: "r"}}
	decide(l, limit.Request{Tenant: "full", Cost: 5})
	got := decide(l,
		limit.Request{Tenant: "full", Dims: region, Cost: 5}, // holds the units of the region for a moment
		limit.Request{Tenant: "full", Dims: region, Cost: 1},
		limit.Request{Tenant: "other", Dims: region, Cost: 1},
	)
	if !store.again {
		t.Fatal("no request was decided again")
	}
	for i, want := range []bool{false, false, true} {
		if got[i].Allowed != want {
			t.Errorf("request %d: allowed %t by %v, want %t", i, got[i].Allowed, got[i].Source, want)
		}
	}
	if got[2].Source != limit.SourceBackstop {
		t.Errorf("the last request is decided by %v", got[2].Source)
	}
}
