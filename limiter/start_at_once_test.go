package limiter_test

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// TestStartAtOnce checks that no caller waits for the deadline with a store that answers
// at once, also if units have to be refunded before there is a decision.
func TestStartAtOnce(t *testing.T) {
	l, _ := newLimiter(t, memory.New(memory.Options{}), 0,
		storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1/h"},
		storetest.Spec{ID: "region", By: []string{"region"}, Rate: "100/h"},
	)
	req := limit.Request{Tenant: "t", Cost: 1, Dims: []limit.Dim{{Name: "region", Value: "eu"}}}
	for i := range 3 {
		var b limiter.Batch
		b.Requests = append(b.Requests, req)
		done := make(chan uint64, 1)
		if !l.Start(&b, time.Time{}, func(token uint64) { done <- token }, 7) {
			select {
			case token := <-done:
				if token != 7 {
					t.Errorf("request %d: done with token %d", i, token)
				}
			case <-time.After(5 * time.Second):
				t.Errorf("request %d: neither decided nor done", i)
			}
			if !l.Finish(&b) {
				l.FinishBlocking(&b)
			}
		}
		if got := b.Decisions[0].Allowed; got != (i == 0) {
			t.Errorf("request %d: allowed is %v", i, got)
		}
	}
}

// TestStartLate checks that the time that requests have waited counts for their deadline.
func TestStartLate(t *testing.T) {
	now := start
	l := clocked(t, memory.New(memory.Options{}), &now, 0, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1/h"})
	for _, waited := range []time.Duration{0, 300 * time.Millisecond, 2 * time.Second} {
		since := time.Time{}
		if waited > 0 {
			since = now.Add(-waited)
		}
		b := limiter.Batch{Requests: []limit.Request{{Tenant: "t", Cost: 1}}}
		l.Start(&b, since, func(uint64) {}, 1)
		if got, want := b.Deadline(), now.Add(time.Second-waited); !got.Equal(want) {
			t.Errorf("after %v the deadline is %v, want %v", waited, got, want)
		}
	}
}

// halfway is a store that decides the first call at once, and the others only on a retry.
type halfway struct {
	*lender
	asked int
}

func (s *halfway) Start(at limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	s.asked++
	s.Take(at, items, calls[:1])
	for _, c := range calls[1:] {
		items[c.First].Retry = true
	}
	return func() bool { return true }
}

// TestFinishBlockingCaches checks that the answers to retried calls are cached like the
// others: lease units are used, and later ones requested.
func TestFinishBlockingCaches(t *testing.T) {
	now := start
	store := &halfway{lender: &lender{Store: memory.New(memory.Options{})}}
	l := leasing(t, store, &now, 1, limit.Lease{On: true, Size: 5, TTL: limit.MaxLeaseTTL}, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/h"})
	leased := 0
	for range 60 {
		b := limiter.Batch{Requests: []limit.Request{{Tenant: "a", Cost: 1}, {Tenant: "b", Cost: 1}}}
		if !l.Start(&b, time.Time{}, func(uint64) {}, 1) && !l.Finish(&b) {
			l.FinishBlocking(&b)
		}
		for _, d := range b.Decisions {
			if d.Source == limit.SourceLease {
				leased++
			} else if d.Source != limit.SourceStore {
				t.Fatalf("%+v", d)
			}
		}
	}
	if leased < 90 || store.asked > 15 {
		t.Errorf("%d of 120 checks from leases, with %d calls", leased, store.asked)
	}
	handBack(t, l)
	b := limiter.Batch{Requests: []limit.Request{{Tenant: "a", Cost: 1}, {Tenant: "b", Cost: 1}}}
	l.Peek(&b)
	for i, d := range b.Decisions {
		if d.Remaining < 939 { // all unused units are returned
			t.Errorf("tenant %d: %d left", i, d.Remaining)
		}
	}
}

// deaf is a store that decides nothing, and requests a retry of the second call only.
type deaf struct {
	*memory.Store
	taken int
}

func (s *deaf) Start(_ limit.DecisionTime, items []limit.Item, calls []limit.Call, _ func(uint64), _ uint64) func() bool {
	return func() bool {
		items[calls[1].First].Retry = true
		return true
	}
}

func (s *deaf) Take(at limit.DecisionTime, items []limit.Item, calls []limit.Call) {
	s.taken += len(calls)
	s.Store.Take(at, items, calls)
}

// TestFinishBlockingSendsNothingTwice checks that a call that the store did not answer is
// not sent again, since it may have been executed. A call for which the store requests a
// retry is.
func TestFinishBlockingSendsNothingTwice(t *testing.T) {
	now := start
	store := &deaf{Store: memory.New(memory.Options{})}
	l := clocked(t, store, &now, 0, storetest.Spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/h"})
	b := limiter.Batch{Requests: []limit.Request{{Tenant: "a", Cost: 1}, {Tenant: "b", Cost: 1}}}
	if l.Start(&b, time.Time{}, func(uint64) {}, 1) || l.Finish(&b) {
		t.Fatal("decided at once")
	}
	l.FinishBlocking(&b)
	if first, second := b.Decisions[0].Source, b.Decisions[1].Source; store.taken != 1 || first != limit.SourceBackstop || second != limit.SourceStore {
		t.Errorf("%d calls, sources %s and %s; want one, the backstop and the store", store.taken, first, second)
	}
}
