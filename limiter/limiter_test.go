package limiter_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// failingStore is a memory store that leaves chosen calls undecided.
type failingStore struct {
	*memory.Store
	fails func(items []limit.Item) bool
}

func (s *failingStore) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		if !s.fails(items[c.First:c.Last]) {
			s.Store.Take(at, items, []limit.Call{c})
		}
	}
}

func (s *failingStore) Peek(limit.DecisionTime, []limit.Item, []limit.Call) {}

// observed collects the decisions that an observer receives.
type observed []string

func (*observed) Took(limit.Source, time.Duration, int64) {}

func (o *observed) Settled(limit.Change, limit.Outcome) {}

func (o *observed) Observe(_ *limit.Set, _ *limit.Request, _ int64, d *limit.Decision, items []limit.Item) {
	*o = append(*o, fmt.Sprintf("%v by %q from %s of %d", d.Allowed, d.LimitID(), d.Source, len(items)))
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newLimiter(tb testing.TB, store limiter.Store, jitter time.Duration, specs ...storetest.Spec) (*limiter.Limiter, *observed) {
	tb.Helper()
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		tb.Fatal(err)
	}
	seen := &observed{}
	return limiter.New(limiter.Options{
		Store: store, Backstop: backstop.New(backstop.Options{Instances: func() int { return 2 }}), Observer: seen, Addrs: addrs,
		Timeout: time.Second, RetryJitter: jitter, Now: func() time.Time { return start },
	}, storetest.Compile(tb, specs...)), seen
}

func decide(l *limiter.Limiter, requests ...limit.Request) []limit.Decision {
	var b limiter.Batch
	b.Requests = append(b.Requests, requests...)
	l.Decide(&b)
	return slices.Clone(b.Decisions)
}

// TestFailingStore checks that calls that the store leaves undecided get this instance's
// share, or are denied, and that a denial there refunds the units that the store granted.
func TestFailingStore(t *testing.T) {
	store := &failingStore{Store: memory.New(memory.Options{})}
	l, seen := newLimiter(t, store, 0,
		storetest.Spec{ID: "open", By: []string{"tenant"}, Rate: "10/h"},
		storetest.Spec{ID: "region", By: []string{"region"}, Rate: "100/h", Algorithm: "fixed_window", OnError: "closed"},
	)
	dark := ""
	store.fails = func(items []limit.Item) bool { return items[0].Limit.ID == dark }
	req := limit.Request{Tenant: "t", Cost: 1, Dims: []limit.Dim{{Name: "region", Value: "eu"}}}

	dark = "open"
	for i := range 7 {
		d := decide(l, req)[0]
		// Half of ten units, because there are two instances.
		if want := i < 5; d.Allowed != want || d.Source != limit.SourceBackstop {
			t.Errorf("request %d with a failing store: %+v", i, d)
		}
	}
	dark = "region"
	d := decide(l, req)[0]
	if d.Allowed || d.Source != limit.SourcePolicy || d.RetryAfter < 100 || d.Remaining != 0 {
		t.Errorf("a limit that fails closed: %+v", d)
	}
	dark = ""
	if d = decide(l, req)[0]; !d.Allowed || d.Remaining != 9 || d.Source != limit.SourceStore {
		t.Errorf("healthy again: %+v, want the unit that was given back", d)
	}
	// The two denials by the backstop refunded the region's units.
	b := limit.Request{Tenant: "other", Cost: 94, Dims: req.Dims}
	if d = decide(l, b)[0]; d.LimitID() != "open" {
		t.Errorf("94 of the 94 units left: %+v, want only the tenant's limit in the way", d)
	}
	if got := (*seen)[0]; got != `true by "region" from backstop of 2` && got != `true by "open" from backstop of 2` {
		t.Errorf("observed %q", got)
	}
	if len(*seen) != 10 {
		t.Errorf("%d decisions observed, want 10", len(*seen))
	}
}

// TestBatchIsSerial compares batches with the same requests one after the other, over
// limits in one hash slot and across hash slots.
func TestBatchIsSerial(t *testing.T) {
	specs := []storetest.Spec{
		{ID: "tenant", By: []string{"tenant"}, Rate: "9/366d", Algorithm: "fixed_window"},
		{ID: "op", By: []string{"tenant", "op"}, Rate: "4/366d", Algorithm: "sliding_window"},
		{ID: "ip", By: []string{"ip"}, Rate: "1/366d", Burst: "5"},
		{ID: "region", By: []string{"region"}, Rate: "7/366d", Algorithm: "fixed_window"},
	}
	rapid.Check(t, func(t *rapid.T) {
		var requests []limit.Request
		for range rapid.IntRange(1, 40).Draw(t, "requests") {
			req := limit.Request{
				Tenant: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tenant"),
				Op:     rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "op"),
				Cost:   rapid.Int64Range(1, 3).Draw(t, "cost"),
			}
			if n := rapid.IntRange(0, 3).Draw(t, "ip"); n > 0 {
				req.Addr = netip.AddrFrom4([4]byte{10, 0, 0, byte(n)})
			}
			if r := rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region"); r != "" {
				req.Dims = []limit.Dim{{Name: "region", Value: r}}
			}
			requests = append(requests, req)
		}
		var tb testing.TB = silent{}
		one, _ := newLimiter(tb, memory.New(memory.Options{}), 0, specs...)
		var want []limit.Decision
		for _, req := range requests {
			want = append(want, decide(one, req)...)
		}
		all, _ := newLimiter(tb, memory.New(memory.Options{}), 0, specs...)
		for i, got := range decide(all, requests...) {
			if got.Allowed != want[i].Allowed {
				t.Fatalf("request %d %+v: %v in a batch, %v alone", i, requests[i], got.Allowed, want[i].Allowed)
			}
		}
	})
}

// silent is a testing.TB for set-up that cannot fail.
type silent struct{ testing.TB }

func (silent) Helper() {}

// TestJitter checks that waits are never too short, that a caller denied later comes back
// later, when all callers before it can have been served, and that the jitter is bounded.
func TestJitter(t *testing.T) {
	spec := storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/m", Burst: "10"}
	l, _ := newLimiter(t, memory.New(memory.Options{}), 10*time.Minute, spec)
	req, all := limit.Request{Tenant: "t", Cost: 1}, limit.Request{Tenant: "t", Cost: 10}
	decide(l, all)
	const wait = 60_000
	for i := range int64(8) {
		if d := decide(l, req)[0]; d.RetryAfter < (i+1)*wait || d.RetryAfter > (i+2)*wait {
			t.Errorf("denial %d: retry after %d ms, want %d to %d", i, d.RetryAfter, (i+1)*wait, (i+2)*wait)
		}
	}
	l, _ = newLimiter(t, memory.New(memory.Options{}), time.Second, spec)
	decide(l, all)
	early := 0
	for range 50 {
		if d := decide(l, req)[0]; d.RetryAfter < wait || d.RetryAfter > wait+1000 {
			t.Errorf("retry after %d ms with at most 1 s of jitter", d.RetryAfter)
		} else if d.RetryAfter < wait+500 {
			early++
		}
	}
	if early == 0 || early == 50 {
		t.Errorf("%d of 50 callers who can have no turn come back in the first half of a second", early)
	}
	l, _ = newLimiter(t, memory.New(memory.Options{}), 0, spec)
	decide(l, all)
	if d := decide(l, req)[0]; d.RetryAfter != wait {
		t.Errorf("retry after %d ms without jitter, want %d", d.RetryAfter, wait)
	}
}

// TestJitterByAGivenSource checks that Options.Random determines where in the spread a
// caller comes back, at both ends.
func TestJitterByAGivenSource(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/m"})
	for random, want := range map[float64]int64{0: 60_000, 0.5: 90_000, 1 - 1.0/(1<<53): 120_000} {
		l := limiter.New(limiter.Options{
			Store: memory.New(memory.Options{}), Timeout: time.Second, RetryJitter: time.Hour,
			Now: func() time.Time { return start }, Random: func() float64 { return random },
		}, set)
		req := limit.Request{Tenant: "t", Cost: 1}
		decide(l, req)
		if d := decide(l, req)[0]; d.RetryAfter != want {
			t.Errorf("%v: retry after %d ms, want %d", random, d.RetryAfter, want)
		}
	}
}

// TestDecideAllocatesNothing checks admissions and denials in one hash slot.
func TestDecideAllocatesNothing(t *testing.T) {
	l, _ := newLimiter(t, memory.New(memory.Options{}), time.Minute, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "3/h"})
	quiet := limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Backstop: backstop.New(backstop.Options{Instances: func() int { return 1 }}), Timeout: time.Second, RetryJitter: time.Minute}, l.Limits())
	var b limiter.Batch
	one := func() {
		b.Requests = append(b.Requests, limit.Request{Tenant: "t", Cost: 1})
		quiet.Decide(&b)
		b.Reset()
	}
	for range 10 {
		one()
	}
	if n := testing.AllocsPerRun(100, one); n != 0 {
		t.Errorf("%v allocations for one decision", n)
	}
}

func TestReset(t *testing.T) {
	l, _ := newLimiter(t, memory.New(memory.Options{}), 0, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/h"})
	req := limit.Request{Tenant: "t", Cost: 1}
	decide(l, req)
	if n, err := l.Reset(context.Background(), "t", ""); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if d := decide(l, req)[0]; !d.Allowed {
		t.Errorf("after the reset: %+v", d)
	}
}

// TestCappedOnce checks that a request which the bound of all tenants together denies gives back the units of each of its
// calls once: those of a shadow limit in a call of its own, and those that the store granted.
func TestCappedOnce(t *testing.T) {
	store := &failingStore{Store: memory.New(memory.Options{}), fails: func(items []limit.Item) bool { return items[0].Limit.ID != "region" }}
	set := storetest.Compile(t,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/366d"},
		storetest.Spec{ID: "trial", By: []string{"zone"}, Rate: "100/366d", Mode: "shadow"},
		storetest.Spec{ID: "region", By: []string{"region"}, Rate: "50/366d"},
	)
	l := limiter.New(limiter.Options{
		Store: store, Backstop: backstop.New(backstop.Options{TotalRate: 3}), Timeout: time.Second, Now: func() time.Time { return start },
	}, set)
	req := limit.Request{Tenant: "t", Cost: 1, Dims: []limit.Dim{{Name: "zone", Value: "z"}, {Name: "region", Value: "eu"}}}
	for i := range 6 {
		d := decide(l, req)[0]
		if d.Allowed != (i < 3) || d.Allowed != (d.Binding != nil) || !d.Allowed && (d.Limit != -1 || d.Remaining != -1 || d.Source != limit.SourceBackstop) {
			t.Errorf("request %d: %+v", i, d)
		}
	}
	var b limiter.Batch
	b.Requests = append(b.Requests, req)
	l.Decide(&b)
	for id, want := range map[string]int64{"tenant": 1000 - 3 - 1, "trial": 100 - 3 - 1, "region": 50 - 3 - 1} {
		for _, it := range b.Items(0) {
			if it.Limit.ID == id && it.Remaining != want {
				t.Errorf("%s has %d left, want %d", id, it.Remaining, want)
			}
		}
	}
}
