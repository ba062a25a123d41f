package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// mover is a tenant whose slot moves.
const mover = "mover"

// moverSlot returns the tenant's slot, and a node to which it can move.
func moverSlot(t *testing.T, c *redistest.Cluster) (slot int, to *redistest.Node) {
	t.Helper()
	slot = int(limit.HashSlot([]byte(limit.TenantKey(mover))))
	if to = c.Nodes[0]; to == c.NodeForSlot(t, slot) {
		to = c.Nodes[1]
	}
	return slot, to
}

func soon() limit.DecisionTime {
	return limit.DecisionTime{Now: time.Now().UnixMicro(), Start: time.Now(), Timeout: 5 * time.Second}
}

func settleMover(s *Store, h limit.Hold, id string, change limit.Change) limit.Outcome {
	outcome, _ := s.Settle(soon(), &limit.Settlement{Hold: h, Tenant: mover, ID: id, Change: change})
	return outcome
}

// TestHoldWhileMoving checks that while a slot moves, settlements are made, or answered as
// not made and made later; that slots of a limit that fails closed are granted if all keys
// are on one node; and that afterwards every unit is in its bucket.
func TestHoldWhileMoving(t *testing.T) {
	for _, declared := range []bool{false, true} {
		c := redistest.StartCluster(t, 2, 0)
		s := openWithOptions(t, Options{DeclaredKeys: declared}, c.Addrs()...)
		set := compile(t,
			spec{ID: "rate", By: []string{"tenant"}, Rate: "1000/366d"},
			spec{ID: "own", By: []string{"tenant", "op"}, Rate: "1000/366d", Algorithm: "fixed_window"},
			spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "30", OnError: "closed"})
		const held = 20
		for i := range held {
			for _, h := range []limit.Hold{limit.HoldReservation, limit.HoldSlot} {
				req := limit.Request{Tenant: mover, Op: "op", Cost: 1, ID: fmt.Sprint("id", i), Hold: h, HoldFor: time.Hour}
				if h == limit.HoldReservation {
					req.Cost = 10
				}
				for _, it := range takeAt(s, set, req, time.Now().UnixMicro()) {
					if !it.Allowed || !it.Recorded {
						t.Fatalf("before the slot moves: %+v", it)
					}
				}
			}
		}
		open := map[string]bool{}
		for i := range held {
			open[fmt.Sprint("id", i)] = true
		}
		settle := func() {
			for id := range open {
				cancelled := settleMover(s, limit.HoldReservation, id, limit.ChangeCancel)
				released := settleMover(s, limit.HoldSlot, id, limit.ChangeRelease)
				if cancelled != limit.OutcomeUnknown && released != limit.OutcomeUnknown {
					delete(open, id)
				}
				break
			}
		}
		slot, to := moverSlot(t, c)
		c.MoveSlot(t, slot, to, settle)
		during := held - len(open)
		for len(open) > 0 {
			settle()
		}
		items := takeAt(s, set, limit.Request{Tenant: mover, Op: "op", Cost: 1, ID: "last", Hold: limit.HoldSlot, HoldFor: time.Hour}, time.Now().UnixMicro())
		for i, left := range []int64{1000 - held - 1, 1000 - held - 1, 29} { // a slot costs a unit of each rate
			if it := &items[i]; it.Remaining != left || !it.Allowed {
				t.Errorf("declared %v: %s has %d left, want %d", declared, it.Limit.ID, it.Remaining, left)
			}
		}
		t.Logf("declared %v: %d of %d were settled while the slot moved; %+v", declared, during, held, s.Stats().Redirects)
	}
}

// TestRevokeMoved checks that a refund after a move of the slot is complete and deletes the
// record.
func TestRevokeMoved(t *testing.T) {
	for _, h := range []limit.Hold{limit.HoldReservation, limit.HoldSlot} {
		c := redistest.StartCluster(t, 2, 0)
		s := openWithOptions(t, Options{}, c.Addrs()...)
		set := compile(t,
			spec{ID: "rate", By: []string{"tenant"}, Rate: "100/366d"},
			spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "1"})
		req := limit.Request{Tenant: mover, Cost: 10, ID: "x", Hold: h, HoldFor: time.Minute}
		var b limit.Buffer
		set.Resolve(&req, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(soon(), b.Items, b.Calls)
		takeAt(s, set, limit.Request{Tenant: mover, Cost: 50}, time.Now().UnixMicro())
		for i := range b.Items {
			b.Items[i].RecordKey = b.Calls[0].RecordKey
		}
		slot, to := moverSlot(t, c)
		c.MoveSlot(t, slot, to, func() {})
		s.Refund(soon(), b.Items) // like a request that another slot denied
		if got := settleMover(s, h, "x", limit.ChangeCancel); got != limit.OutcomeUnknown {
			t.Errorf("hold %d: what was given back is settled: %d", h, got)
		}
		peek := limit.Buffer{}
		set.Resolve(&limit.Request{Tenant: mover, Cost: 1}, testAddrs, time.Now().UnixMicro(), &peek)
		redistest.Eventually(t, 5*time.Second, "where the slot is, is learnt", func() bool {
			s.Peek(soon(), peek.Items, peek.Calls)
			return peek.Items[0].Source == limit.SourceStore
		})
		req.ID, req.Cost = "y", 1
		for i, it := range takeAt(s, set, req, time.Now().UnixMicro()) {
			if want := []int64{49, 0}[i]; !it.Allowed || it.Remaining != want {
				t.Errorf("hold %d: %s allowed %v with %d left, want %d", h, it.Limit.ID, it.Allowed, it.Remaining, want)
			}
		}
	}
}

// TestLateSlot checks that a slot granted after its caller had left is released when the
// caller releases the slot that it got instead.
func TestLateSlot(t *testing.T) {
	node := redistest.Start(t)
	s := openWithOptions(t, Options{}, node.Addr)
	set := compile(t, spec{ID: "slots", By: []string{"tenant"}, Algorithm: "concurrency", Slots: "2"})
	l := limiter.New(limiter.Options{Store: s, Backstop: backstop.New(backstop.Options{}), Addrs: testAddrs, Timeout: 20 * time.Millisecond}, set)
	acquire := func(id string) (d limit.Decision, kept bool) {
		var b limiter.Batch
		b.Requests = append(b.Requests, limit.Request{Tenant: "t", Cost: 1, ID: id, Hold: limit.HoldSlot, HoldFor: time.Hour})
		l.Decide(&b)
		return b.Decisions[0], b.Held(0)
	}
	release := func(id string, kept bool) limit.Outcome {
		return l.Settle(&limit.Settlement{Hold: limit.HoldSlot, Tenant: "t", ID: id, Change: limit.ChangeRelease}, kept)
	}
	redistest.Eventually(t, 5*time.Second, "the store decides", func() bool {
		d, kept := acquire("warm")
		release("warm", kept)
		return d.Source == limit.SourceStore
	})
	late := 0
	held := func() int64 { return client(t, node.Addr).ZCard(t.Context(), "lg:t:{t}:slots;c").Val() }
	for i := range 20 {
		id := fmt.Sprint("late-", i)
		node.Stop()
		d, kept := acquire(id)
		node.Cont()
		if d.Source != limit.SourceBackstop || kept {
			t.Fatalf("while the store stands still: %+v", d)
		}
		before := late
		redistest.Eventually(t, 5*time.Second, "the store is asked again", func() bool {
			d, kept := acquire("probe")
			if late == before && held() > 1 {
				late++
			}
			if kept {
				release("probe", kept)
			}
			return d.Source == limit.SourceStore || held() > 1
		})
		if got := release(id, kept); got != limit.OutcomeDone {
			t.Errorf("release: %d", got)
		}
		redistest.Eventually(t, 5*time.Second, "no slot is lost", func() bool {
			release("probe", true)
			return held() == 0
		})
	}
	t.Logf("%d of 20 slots were given late", late)
}
