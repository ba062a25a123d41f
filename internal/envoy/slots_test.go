package envoy

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// callCounter is a store that counts the calls that take.
type callCounter struct {
	limiter.Store
	calls atomic.Int64
}

// Take implements limiter.Store.
func (c *callCounter) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	c.calls.Add(int64(len(calls)))
	c.Store.Take(at, items, calls)
}

// Start implements limiter.Store.
func (c *callCounter) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, done func(token uint64), token uint64) func() bool {
	c.calls.Add(int64(len(calls)))
	return c.Store.Start(at, items, calls, done, token)
}

// TestTenantSlots: all counters of a tenant have names in its hash slot, those of further limits and of limits
// that descriptors carry too, and a request decides them in one call, in whatever order they stand.
func TestTenantSlots(t *testing.T) {
	store := &callCounter{Store: memory.New(memory.Options{})}
	s := extended(t, store, time.Second, extensions)
	for descriptors, calls := range map[string]int64{
		"a=1":             1, // its limit and two further ones
		"a=2,b=1,a=2 c=1": 2, // without a rule for both entries
		"a=3,b=2,a=3 c=1 limit=5/6,b=3,a=3 d=1 limit=5/6": 3,
		"a=4,a=5,a=4 c=1 limit=5/6":                       2,
		"a=6,a=6":                                         3, // a call has no counter twice
	} {
		before := store.calls.Load()
		if got := ask(t, s, descriptors, 0); !strings.HasPrefix(got, "OK") {
			t.Errorf("%s: %s", descriptors, got)
		}
		if n := store.calls.Load() - before; n != calls {
			t.Errorf("%s: %d calls, want %d", descriptors, n, calls)
		}
	}
	x := explainText(t, s, "a=1,a=1 c=1 limit=5/6,remote_address=10.0.0.1", 0)
	var keys []string
	for _, d := range x.Descriptors {
		keys = append(keys, d.Key)
	}
	if got, want := strings.Join(keys, " "), "lg:d:{mesh%3B1}mesh%3Ba:1 lg:d:{mesh%3B1}mesh%3B%3Ba:1%3Bc:1%3B%3B31536000 lg:d:{mesh%3Bremote_address:h8%3B%3Bs} "+
		"lg:d:{mesh%3B1}mesh%3Ba:1%3B%3Btight%3B%3Bt lg:d:{mesh%3B1}mesh%3Ba:1%3B%3Bwide%3B%3Bf"; got != want {
		t.Errorf("the keys are %s, want %s", got, want)
	}
}

// TestFurtherCounters: the counters of further limits stay the same when the algorithm of their rule changes.
func TestFurtherCounters(t *testing.T) {
	for _, algorithm := range []string{"fixed_window", "token_bucket"} {
		s := extended(t, memory.New(memory.Options{}), time.Second, "version: 1\ndomains: {mesh: {rules: {a: {algorithm: "+algorithm+", also: [{id: x, rate: 1/h}]}}}}\n")
		if x := explainText(t, s, "a=1", 0); x.Descriptors[1].Key != "lg:d:{mesh%3Ba:1%3B%3Bx%3B%3Bf}" {
			t.Errorf("%s: the key is %s", algorithm, x.Descriptors[1].Key)
		}
	}
}

// TestFurtherLimitsBusy: further limits are among the descriptors that are decided at once.
func TestFurtherLimitsBusy(t *testing.T) {
	s := extended(t, memory.New(memory.Options{}), time.Second, extensions)
	req := &rls.RateLimitRequest{Domain: "mesh", Descriptors: []*ratelimit.RateLimitDescriptor{descriptor(t, "a=1")}}
	for room, want := range map[int64]error{3: nil, 2: errBusy, 0: errBusy} {
		s.inProgress.Store(maxInProgress - room)
		if _, err := s.ShouldRateLimit(t.Context(), req); !errors.Is(err, want) || s.inProgress.Load() != maxInProgress-room {
			t.Errorf("room for %d: %v, want %v, and then room for %d", room, err, want, maxInProgress-s.inProgress.Load())
		}
	}
}
