package cluster

import (
	"errors"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// TestWays: a redirect of each kind is followed once, keys that are in two places are asked for
// one by one, and from no way can a call go on for ever.
func TestWays(t *testing.T) {
	const here, there = "127.0.0.1:7000", "127.0.0.1:7001"
	moved, ask := replyError("MOVED 1 "+here), replyError("ASK 1 "+there)
	tryAgain := replyError("TRYAGAIN Multiple keys request during rehashing of slot")
	inScript := replyError("ERR Script attempted to access a non local key in a cluster node script: x, on @user_script:1.")
	for _, c := range []struct {
		from way
		why  error
		to   way
		ok   bool
	}{
		{way{}, moved, way{alone: true, to: here, moved: true}, true},
		{way{}, ask, way{alone: true, to: there, asking: true}, true},
		{way{}, inScript, way{alone: true}, true},
		{way{alone: true}, inScript, way{}, false},
		{way{alone: true}, ask, way{alone: true, to: there, asking: true}, true},
		{way{alone: true, to: here, moved: true}, ask, way{alone: true, to: there, moved: true, asking: true}, true},
		{way{alone: true, to: there, asking: true}, moved, way{}, false},
		{way{alone: true, to: here, moved: true}, moved, way{}, false},
		{way{}, tryAgain, way{single: true}, true},
		{way{alone: true, to: there, asking: true}, tryAgain, way{single: true}, true},
		{way{alone: true, single: true}, tryAgain, way{}, false},
		{way{alone: true, single: true}, ask, way{alone: true, single: true, to: there, asking: true}, true},
		{way{alone: true, single: true, to: there, asking: true}, ask, way{}, false},
		{way{}, replyError("CLUSTERDOWN The cluster is down"), way{}, false},
		{way{}, replyError("READONLY You can't write against a read only replica."), way{}, false},
		{way{}, errors.New("read: connection reset"), way{}, false},
		{way{clock: true}, ask, way{clock: true, alone: true, to: there, asking: true}, true},
	} {
		if to, ok := c.from.after(c.why); ok != c.ok || ok && to != c.to {
			t.Errorf("%+v after %q: %+v, %v, want %+v, %v", c.from, c.why, to, ok, c.to, c.ok)
		}
	}
}

// TestClosedLimitsFollowSlots moves a slot to another master and back, key by key,
// and to a master that has none yet, while limits that fail closed are asked for in
// it: nobody notices, but for the time in which a new master is met, and every bucket
// loses exactly what was admitted, although its call has keys in two places.
func TestClosedLimitsFollowSlots(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	for _, opts := range corners {
		t.Run(wayName(opts), func(t *testing.T) {
			s := openWithOptions(t, opts, c.Addrs()...)
			from, to := c.NodeForSlot(t, 0), c.NodeForSlot(t, limit.Slots-1)
			slot := 0
			tenantsWhere(t, 1, func(of int) bool { slot = of; return of < limit.Slots/4 })
			tenants := tenantsWhere(t, 3, func(of int) bool { return of == slot })
			ld := startLoadOn(t, s, 5*time.Second, "closed", tenants...)
			ld.advance(20 * loadPipeline)
			for range 2 {
				c.MoveSlot(t, slot, to, func() { ld.advance(4 * loadPipeline) })
				ld.advance(4 * loadPipeline)
				c.MoveSlot(t, slot, from, func() { ld.advance(4 * loadPipeline) })
				ld.advance(4 * loadPipeline)
			}
			if n := ld.backstop.total(); n > 0 {
				t.Errorf("%d of %d calls were left undecided: %+v", n, ld.checks.Load(), s.Stats())
			}
			excess, st := ld.balance(), s.Stats()
			if excess != 0 || st.RefundsLost != 0 {
				t.Errorf("the buckets have lost %d units more than were admitted: %+v", excess, st)
			}
			if st.Redirects[KindMoved]+st.Redirects[KindAsk] == 0 || st.Redirects[KindTryAgain] == 0 {
				t.Errorf("no redirect was followed: %+v", st)
			}
			t.Logf("%d checks, redirects %v", ld.checks.Load(), st.Redirects)
		})
	}
	redistest.AssertAllKeysExpire(t, c.Nodes...)
}

// TestDenialAcrossPlaces: while the keys of a call are in two places, a denial by one
// takes nothing from the other.
func TestDenialAcrossPlaces(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, c.Addrs()...)
	set := compile(t,
		spec{ID: "tenant", By: []string{"tenant"}, Rate: "10/h", OnError: "closed"},
		spec{ID: "op", By: []string{"tenant", "op"}, Rate: "3/h", OnError: "closed"},
	)
	tenant := storetest.Fresh(t)
	slot := int(limit.Slot([]byte(limit.TenantKey(tenant))))
	to := c.Nodes[0]
	if to == c.NodeForSlot(t, slot) {
		to = c.Nodes[1]
	}
	asked := 0
	ask := func() []limit.Item {
		asked++
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: tenant, Op: "x", Cost: 1}, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(limit.Moment{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		return b.Items
	}
	ask()
	c.MoveSlot(t, slot, to, func() { // before the first key moves, after it, and after both
		for _, it := range ask() {
			if it.Source != limit.SourceStore {
				t.Errorf("%s is undecided: %+v", it.Limit.ID, s.Stats())
			}
		}
	})
	items := ask()
	if asked != 5 || items[0].Remaining != 10-3-1 || items[1].Remaining != 0 || items[1].Allowed {
		t.Errorf("after %d requests, 3 of them admitted: %+v and %+v", asked, items[0].Verdict, items[1].Verdict)
	}
	if st := s.Stats(); st.RefundsLost != 0 || st.Redirects[KindTryAgain] == 0 {
		t.Errorf("%+v", st)
	}
}

// TestNewMasterIsMet: a master without slots is not in the topology; a redirect to it
// makes it known, so that a slot can move there.
func TestNewMasterIsMet(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	tenant := storetest.Fresh(t)
	slot := int(limit.Slot([]byte(limit.TenantKey(tenant))))
	newcomer := c.Join(t)
	s := open(t, c.Nodes[0].Addr)
	if s.top.Load().nodes[newcomer.Addr] != nil {
		t.Fatal("the new master is known already")
	}
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000000/h", OnError: "closed"})
	decided := func() bool {
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: tenant, Cost: 1}, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(limit.Moment{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		return b.Items[0].Source == limit.SourceStore
	}
	c.MoveSlot(t, slot, newcomer, func() {
		eventually(t, 10*time.Second, "the new master to be met", decided)
	})
	eventually(t, 10*time.Second, "the slot to be served", decided)
}
