package nearlimit

import (
	"bytes"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// watched is a limiter over memory whose decisions a watch observes, at a time that tests set.
type watched struct {
	*limiter.Limiter
	watch *Watch
	now   time.Time
	log   bytes.Buffer

	mu      sync.Mutex // guards the fields below
	counted map[string]int
	events  []Event
	full    bool // Send has no room
}

func (w *watched) Observe(set *limit.Set, req *limit.Request, now int64, d *limit.Decision, items []limit.Item) {
	w.watch.Observe(set, req, now, d, items)
}
func (w *watched) Settled(limit.Change, limit.Outcome)     {}
func (w *watched) Took(limit.Source, time.Duration, int64) {}

func watch(tb testing.TB, specs ...storetest.Spec) *watched {
	tb.Helper()
	w := &watched{now: time.Date(2026, 5, 6, 7, 0, 0, 0, time.UTC), counted: map[string]int{}}
	w.watch = New(Options{
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
		Count: func(_ *limit.Set, l *limit.Limit) {
			w.mu.Lock()
			w.counted[l.ID+" "+l.Mode.String()]++
			w.mu.Unlock()
		},
		Send: func(e Event) bool {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.full {
				return false
			}
			w.events = append(w.events, e)
			return true
		},
	})
	addrs, err := limit.NewAddrHasher([]byte("a secret for tests only"), limit.Prefixes{})
	if err != nil {
		tb.Fatal(err)
	}
	w.Limiter = limiter.New(limiter.Options{
		Store: memory.New(memory.Options{}), Observer: w, Addrs: addrs, Timeout: time.Second, Now: func() time.Time { return w.now },
	}, storetest.Compile(tb, specs...))
	return w
}

// check decides requests of a tenant, one at a time, and returns how many were admitted.
func (w *watched) check(n int, tenant string) (admitted int) {
	var b limiter.Batch
	for range n {
		b.Reset()
		b.Requests = append(b.Requests, limit.Request{Tenant: tenant, Op: "GET /", Addr: netip.MustParseAddr("203.0.113.7"), Cost: 1})
		w.Decide(&b)
		if b.Decisions[0].Allowed {
			admitted++
		}
	}
	return admitted
}

// TestWatch checks that each request past the part is counted, that there is one event for a bucket and
// window, and that denied requests are none.
func TestWatch(t *testing.T) {
	w := watch(t,
		storetest.Spec{ID: "hour", By: []string{"tenant"}, Algorithm: "fixed_window", Rate: "10/h", Warn: "80%"},
		storetest.Spec{ID: "day", By: []string{"tenant"}, Algorithm: "fixed_window", Rate: "100/day", Warn: "10%", Mode: "shadow"},
		storetest.Spec{ID: "tiny", By: []string{"tenant"}, Rate: "1/h", Warn: "100%", Mode: "shadow"},
		storetest.Spec{ID: "silent", By: []string{"tenant"}, Rate: "10/h"},
		storetest.Spec{ID: "ip", By: []string{"ip"}, Algorithm: "fixed_window", Rate: "10/h", Warn: "100%"},
	)
	if n := w.check(15, "acme"); n != 10 {
		t.Fatalf("%d admitted", n)
	}
	if got, want := fmt.Sprint(w.counted), "map[day shadow:1 hour enforce:3 ip enforce:1 tiny shadow:1]"; got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
	if len(w.events) != 4 || w.events[0].Limit != "tiny" || w.events[0].Mode != "shadow" || w.events[1].Limit != "hour" || w.events[2].Limit != "day" {
		t.Fatalf("events %+v", w.events)
	}
	w.events = w.events[1:]
	if ip := w.events[2]; ip.Limit != "ip" || ip.Remaining != 0 || ip.Plan != "" || strings.Contains(ip.Bucket+w.log.String(), "203.0.113.7") {
		t.Errorf("the address: %+v", ip)
	}
	e := w.events[0]
	want := Event{
		ID: e.ID, At: w.now.UTC(), Limit: "hour", Plan: "p", Mode: "enforce", Tenant: "acme", Operation: "GET /", Bucket: e.Bucket, Warn: "80%",
		Capacity: 10, Remaining: 2, ResetAfter: time.Hour.Milliseconds(),
	}
	if e.At = e.At.UTC(); fmt.Sprint(e) != fmt.Sprint(want) || !strings.HasPrefix(e.Bucket, "lg:t:{acme}") {
		t.Errorf("got %+v, want %+v", e, want)
	}
	first := e.ID
	w.now = w.now.Add(time.Hour)
	w.check(10, "acme")
	if len(w.events) != 6 || w.events[4].Limit != "hour" || w.events[4].ID == first {
		t.Fatalf("a window later: %+v", w.events[3:])
	}
	if n := strings.Count(w.log.String(), `msg="bucket nearly used up"`); n != 1+len(w.events) {
		t.Errorf("%d lines for %d events", n, len(w.events))
	}
}

// TestWatchAgrees checks that two proxies give the event of one bucket and window the same id.
func TestWatchAgrees(t *testing.T) {
	ids := map[string]bool{}
	for range 2 {
		w := watch(t, storetest.Spec{ID: "a", By: []string{"tenant"}, Rate: "5/s", Warn: "60%"})
		w.check(5, "acme")
		w.now = w.now.Add(20 * time.Second) // the same minute: a bucket of a second is an event a minute
		w.check(5, "acme")
		if len(w.events) != 1 {
			t.Fatalf("%d events", len(w.events))
		}
		ids[w.events[0].ID] = true
	}
	if len(ids) != 1 {
		t.Errorf("ids %v", ids)
	}
}

// TestWatchBounds checks that a flood of buckets makes at most a hundred events a second, that a bucket
// left out has its event later, and that memory is bounded.
func TestWatchBounds(t *testing.T) {
	w := watch(t, storetest.Spec{ID: "a", By: []string{"tenant"}, Rate: "1000/h", Warn: "0.1%"})
	for i := range remembered + 100 {
		w.check(1, fmt.Sprint("tenant-", i))
	}
	if len(w.events) != most {
		t.Errorf("%d events in a second", len(w.events))
	}
	if w.now = w.now.Add(time.Second); w.check(1, "tenant-5000") != 1 || len(w.events) != most+1 {
		t.Errorf("%d events a second later", len(w.events))
	}
	for i := range remembered + 100 {
		w.now = w.now.Add(20 * time.Millisecond)
		w.check(1, fmt.Sprint("tenant-", i))
	}
	if n := w.watch.tenants.Len(); n != tenants {
		t.Errorf("%d tenants counted", n)
	}
	if n := w.watch.latest.Len(); n != remembered {
		t.Errorf("%d buckets remembered", n)
	}
}

// TestWatchFull checks that an event that finds no room comes later.
func TestWatchFull(t *testing.T) {
	w := watch(t, storetest.Spec{ID: "a", By: []string{"tenant"}, Rate: "10/h", Warn: "10%"})
	w.full = true
	w.check(3, "acme")
	if w.full = false; w.check(1, "acme") != 1 || len(w.events) != 1 || strings.Count(w.log.String(), "\n") != 1 {
		t.Errorf("%d events, log %s", len(w.events), w.log.String())
	}
}

// TestWatchTenantBudget checks that one tenant with many buckets leaves room for others.
func TestWatchTenantBudget(t *testing.T) {
	w := watch(t, storetest.Spec{ID: "a", By: []string{"tenant", "op"}, Rate: "10/h", Warn: "10%"})
	var b limiter.Batch
	for i := range 500 {
		b.Reset()
		b.Requests = append(b.Requests, limit.Request{Tenant: "many", Op: fmt.Sprint("op ", i), Cost: 1})
		w.Decide(&b)
	}
	if len(w.events) != mostOfTenant || w.check(1, "other") != 1 || len(w.events) != mostOfTenant+1 {
		t.Errorf("%d events", len(w.events))
	}
}

// TestWatchChange checks that a limit that was changed warns again, in the same window.
func TestWatchChange(t *testing.T) {
	spec := storetest.Spec{ID: "a", By: []string{"tenant"}, Algorithm: "fixed_window", Rate: "10/h", Warn: "50%"}
	w := watch(t, spec)
	w.check(6, "acme")
	spec.Rate = "20/h"
	w.SetLimits(storetest.Compile(t, spec))
	w.check(6, "acme")
	if len(w.events) != 2 || w.events[0].ID == w.events[1].ID || w.events[1].Capacity != 20 {
		t.Errorf("events %+v", w.events)
	}
}

// TestWatchShares checks that the share of one proxy makes no event: it says nothing about the bucket.
func TestWatchShares(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "a", By: []string{"tenant"}, Rate: "10/h", Warn: "10%"})
	w := watch(t)
	items := []limit.Item{{Limit: set.LimitByID("a"), Name: []byte("lg:t:{x}:a;t"), Cost: 1}}
	items[0].Allowed = true
	for _, c := range []struct {
		source limit.Source
		local  bool
		lease  int64
		want   int
	}{{limit.SourceBackstop, false, 0, 0}, {limit.SourceStore, true, 0, 0}, {limit.SourceStore, false, 10, 0}, {limit.SourceLease, false, 0, 1}} {
		items[0].Source, items[0].Local, items[0].LeaseGranted = c.source, c.local, c.lease
		w.watch.Observe(nil, &limit.Request{Tenant: "x"}, 1e15, &limit.Decision{Allowed: true}, items)
		if len(w.events) != c.want {
			t.Errorf("%+v: %d events", c, len(w.events))
		}
	}
}

// TestWatchWindows checks that a bucket has one event in each window of its limit, and one a minute if
// that is shorter.
func TestWatchWindows(t *testing.T) {
	for _, c := range []struct {
		algorithm, rate string
		want            int
	}{{"fixed_window", "100/h", 2}, {"fixed_window", "100/day", 1}, {"fixed_window", "100/month", 1}, {"sliding_window", "100/h", 2}, {"token_bucket", "100/h", 2}, {"fixed_window", "100/s", 31}} {
		w := watch(t, storetest.Spec{ID: "a", By: []string{"tenant"}, Algorithm: c.algorithm, Rate: c.rate, Warn: "1%"})
		w.now = w.now.Add(45*time.Minute + 5*time.Second)
		for range 61 { // half an hour, over the end of an hour
			if w.check(1, "acme") != 1 {
				t.Fatalf("%+v: denied", c)
			}
			w.now = w.now.Add(30 * time.Second)
		}
		if len(w.events) != c.want {
			t.Errorf("%s %s: %d events, want %d", c.algorithm, c.rate, len(w.events), c.want)
		}
	}
}

// TestWatchConcurrent checks that concurrent requests make one event of a bucket.
func TestWatchConcurrent(t *testing.T) {
	w := watch(t, storetest.Spec{ID: "a", By: []string{"tenant"}, Rate: "1000/h", Warn: "1%"})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { w.check(100, "acme") })
	}
	wg.Wait()
	if len(w.events) != 1 || w.counted["a enforce"] != 800-9 {
		t.Errorf("%d events, %v", len(w.events), w.counted)
	}
}

// BenchmarkObserve measures a decision whose limits do not warn, and one of a bucket that is nearly used
// up and has had its event.
func BenchmarkObserve(b *testing.B) {
	for _, warn := range []string{"", "1%"} {
		b.Run("warn="+warn, func(b *testing.B) {
			w := New(Options{Count: func(*limit.Set, *limit.Limit) {}, Log: slog.New(slog.DiscardHandler)})
			set := storetest.Compile(b, storetest.Spec{ID: "a", By: []string{"tenant"}, Rate: "10/h", Warn: warn})
			items := []limit.Item{{Limit: set.LimitByID("a"), Name: []byte("rl:{acme}:a;t"), Source: limit.SourceStore}}
			items[0].Allowed = true
			for b.Loop() {
				w.Observe(nil, &limit.Request{Tenant: "acme"}, 1e15, &limit.Decision{Allowed: true}, items)
			}
		})
	}
}
