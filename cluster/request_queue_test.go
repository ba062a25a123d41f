package cluster

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// asked returns the buffers of one check for each cost, of which those above 1 are reservations.
func asked(set *limit.Set, costs ...int64) *limit.Buffer {
	b := new(limit.Buffer)
	for i, cost := range costs {
		req := &limit.Request{Tenant: "acme", Op: "GET /", Cost: cost}
		if cost > 1 {
			req.Hold, req.HoldFor, req.ID = limit.HoldReservation, time.Second, fmt.Sprint("id", i)
		}
		set.Resolve(req, testAddrs, 0, b)
	}
	return b
}

// TestManyAlone: a batch has all calls that share commands, and of those with commands of their own, which came before, only as
// many as a node decides in a moment.
func TestManyAlone(t *testing.T) {
	p := &pipeline{}
	for range 3 * maxAlone {
		p.alone.add(&nodeRequest{alone: true, calls: make([]limit.Call, 1)})
	}
	last := &nodeRequest{calls: make([]limit.Call, 1)}
	p.shared.add(last)
	b := newBatch()
	p.dequeue(b)
	if b.requests[0] != last || len(b.requests) != 1+maxAlone || p.alone.calls != 2*maxAlone || p.shared.calls != 0 {
		t.Errorf("%d requests in a batch, %d and %d calls wait", len(b.requests), p.alone.calls, p.shared.calls)
	}
	for range 2 {
		p.dequeue(b)
	}
	if len(b.requests) != maxAlone || p.alone.calls != 0 || len(p.alone.requests) != 0 {
		t.Errorf("%d requests in the last batch, %d calls wait", len(b.requests), p.alone.calls)
	}
}

// TestAloneStaysInOrder: the calls of a caller, one of which has a command of its own, wait in one queue, in small parts.
func TestAloneStaysInOrder(t *testing.T) {
	s := open(t, redistest.Start(t).Addr)
	set := compile(t, spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/h"})
	route := func(what op, costs ...int64) *request {
		req, b := &request{}, asked(set, costs...)
		req.routeCalls(s, what, b.Items, b.Calls, time.Now(), time.Hour)
		return req
	}
	costs := make([]int64, 2*maxAlone+1)
	for i := range costs {
		costs[i] = 1
	}
	if used := route(opTake, costs...).used; len(used) != 1 || used[0].alone {
		t.Errorf("checks are in %d parts", len(used))
	}
	costs[2*maxAlone] = 2
	if used := route(opPeek, costs...).used; len(used) != 1 || used[0].alone {
		t.Errorf("peeks are in %d parts", len(used))
	}
	used := route(opTake, costs...).used
	next := 0
	for _, nr := range used {
		for _, c := range nr.calls {
			if c.First != next || !nr.alone {
				t.Errorf("the call of item %d is at %d, alone %v", c.First, next, nr.alone)
			}
			next = c.Last
		}
	}
	if len(used) != 3 || next != len(costs) {
		t.Errorf("%d parts with %d items", len(used), next)
	}
}

// TestWaitedTooLong: calls that waited for too long are no sign of a lost connection, and if they have commands of their own
// none of a slow node.
func TestWaitedTooLong(t *testing.T) {
	addr := redistest.Start(t).Addr
	set := compile(t, spec{ID: "tenant", By: []string{"tenant"}, Rate: "1000/h"})
	for cost, want := range map[int64]error{1: errOverload, 2: nil} {
		s := open(t, addr)
		b := asked(set, cost)
		at := limit.DecisionTime{Start: time.Now(), Timeout: 100 * time.Millisecond}
		done := make(chan uint64, 1)
		end := s.Start(at, b.Items, b.Calls, func(token uint64) { done <- token }, 1)
		n := s.top.Load().nodeOf(&b.Items[0])
		n.pipeline.mu.Lock()
		for _, queue := range []*requestQueue{&n.pipeline.shared, &n.pipeline.alone} {
			for _, nr := range queue.requests {
				nr.sendBy = time.Now().Add(-time.Second)
			}
		}
		n.pipeline.mu.Unlock()
		s.Flush()
		<-done
		end()
		if err := n.breaker.Status().Err; !errors.Is(err, want) {
			t.Errorf("cost %d: the breaker has %v, want %v", cost, err, want)
		}
		if b.Items[0].Source != limit.SourceNone {
			t.Errorf("cost %d: decided by %s", cost, b.Items[0].Source)
		}
	}
}
