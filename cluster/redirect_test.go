package cluster

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/resp"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// TestWays checks that a call follows one redirect, or two if the slot has moved again,
// that a call with keys on two nodes is split, and that no route goes on for ever.
func TestWays(t *testing.T) {
	const here, there = "127.0.0.1:7000", "127.0.0.1:7001"
	moved, ask := resp.Error("MOVED 1 "+here), resp.Error("ASK 1 "+there)
	tryAgain := resp.Error("TRYAGAIN Multiple keys request during rehashing of slot")
	inScript := resp.Error("ERR Script attempted to access a non local key in a cluster node script: x, on @user_script:1.")
	for _, c := range []struct {
		from route
		why  error
		to   route
		ok   bool
	}{
		{route{}, moved, route{declared: true, to: here, moved: 1}, true},
		{route{}, ask, route{declared: true, to: there, asking: true}, true},
		{route{}, inScript, route{declared: true}, true},
		{route{declared: true}, inScript, route{}, false},
		{route{declared: true}, ask, route{declared: true, to: there, asking: true}, true},
		{route{declared: true, to: here, moved: 1}, ask, route{declared: true, to: there, moved: 1, asking: true}, true},
		{route{declared: true, to: there, asking: true}, moved, route{}, false},
		{route{declared: true, to: there, moved: 1}, moved, route{declared: true, to: here, moved: 2}, true},
		{route{declared: true, to: there, moved: 2}, moved, route{}, false},
		{route{}, tryAgain, route{splitKey: true}, true},
		{route{declared: true, to: there, asking: true}, tryAgain, route{splitKey: true}, true},
		{route{declared: true, splitKey: true}, tryAgain, route{}, false},
		{route{declared: true, splitKey: true}, ask, route{declared: true, splitKey: true, to: there, asking: true}, true},
		{route{declared: true, splitKey: true, to: there, asking: true}, ask, route{}, false},
		{route{}, resp.Error("CLUSTERDOWN The cluster is down"), route{}, false},
		{route{}, resp.Error("READONLY You can't write against a read only replica."), route{}, false},
		{route{}, errors.New("read: connection reset"), route{}, false},
		{route{clockRetry: true}, ask, route{clockRetry: true, declared: true, to: there, asking: true}, true},
	} {
		if to, ok := c.from.next(c.why); ok != c.ok || ok && to != c.to {
			t.Errorf("%+v after %q: %+v, %v, want %+v, %v", c.from, c.why, to, ok, c.to, c.ok)
		}
	}
}

// TestClosedLimitsFollowSlots moves a slot to another master and back, key by key, and to a
// master without slots, during calls with limits that fail closed. No caller is affected,
// except until a new master is discovered, and every bucket loses exactly the admitted
// units, although its call has keys on two nodes.
func TestClosedLimitsFollowSlots(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	for _, opts := range corners {
		t.Run(wayName(opts), func(t *testing.T) {
			s := openWithOptions(t, opts, c.Addrs()...)
			from, to := c.NodeForSlot(t, 0), c.NodeForSlot(t, limit.NumHashSlots-1)
			slot := 0
			tenantsWhere(t, 1, func(of int) bool { slot = of; return of < limit.NumHashSlots/4 })
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

// TestDenialAcrossPlaces checks that while the keys of a call are on two nodes, a denial by
// one takes nothing from the other.
func TestDenialAcrossPlaces(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, c.Addrs()...)
	set := compile(t,
		spec{ID: "tenant", By: []string{"tenant"}, Rate: "10/h", OnError: "closed"},
		spec{ID: "op", By: []string{"tenant", "op"}, Rate: "3/h", OnError: "closed"},
	)
	tenant, slot, to := movingTenant(t, c)
	asked := 0
	ask := func() []limit.Item {
		asked++
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: tenant, Op: "x", Cost: 1}, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
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

// TestNewMasterIsMet checks that a redirect discovers a master without slots, which is not
// in the topology, so that a slot can move there.
func TestNewMasterIsMet(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	tenant := storetest.Fresh(t)
	slot := int(limit.HashSlot([]byte(limit.TenantKey(tenant))))
	newcomer := c.Join(t)
	s := open(t, c.Nodes[0].Addr)
	if s.top.Load().nodes[newcomer.Addr] != nil {
		t.Fatal("the new master is known already")
	}
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000000/h", OnError: "closed"})
	decided := func() bool {
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: tenant, Cost: 1}, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		return b.Items[0].Source == limit.SourceStore
	}
	c.MoveSlot(t, slot, newcomer, func() {
		redistest.Eventually(t, 10*time.Second, "the new master to be met", decided)
	})
	redistest.Eventually(t, 10*time.Second, "the slot to be served", decided)
}

// movingTenant returns a tenant and its slot, and a master that does not have it.
func movingTenant(t *testing.T, c *redistest.Cluster) (tenant string, slot int, to *redistest.Node) {
	t.Helper()
	tenant = storetest.Fresh(t)
	slot = int(limit.HashSlot([]byte(limit.TenantKey(tenant))))
	to = c.Nodes[0]
	if to == c.NodeForSlot(t, slot) {
		to = c.Nodes[1]
	}
	return tenant, slot, to
}

// closedPair returns two limits that fail closed, with buckets in two keys.
func closedPair(t *testing.T, rate string) *limit.Set {
	t.Helper()
	return compile(t,
		spec{ID: "tenant", By: []string{"tenant"}, Rate: rate, OnError: "closed"},
		spec{ID: "op", By: []string{"tenant", "op"}, Rate: rate, OnError: "closed"},
	)
}

// TestLeasesOutliveAMove checks that a bucket leased before its slot moved is leased after
// that too.
func TestLeasesOutliveAMove(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	s := open(t, c.Addrs()...)
	set := closedPair(t, "1000000/h")
	for _, l := range set.Limits {
		l.Lease = limit.Lease{On: true, Size: 20, TTL: limit.MinLeaseTTL}
	}
	l := limiter.New(limiter.Options{Store: s, Backstop: &refuser{asked: map[string]int{}}, Addrs: testAddrs, Timeout: 5 * time.Second}, set)
	tenant, slot, to := movingTenant(t, c)
	leased := func() (n int) {
		for range 100 {
			var b limiter.Batch
			b.Requests = append(b.Requests, limit.Request{Tenant: tenant, Op: "x", Cost: 1})
			l.Decide(&b)
			if b.Decisions[0].Source == limit.SourceLease {
				n++
			}
		}
		return n
	}
	if n := leased(); n == 0 {
		t.Fatal("nothing is leased")
	}
	c.MoveSlot(t, slot, to, func() { leased() })
	if n := leased(); n == 0 || s.Stats().Redirects[KindTryAgain] == 0 {
		t.Errorf("%d of 100 checks are leased after the slot has moved: %+v", n, s.Stats())
	}
}

// countedSocket counts the writes to a socket.
type countedSocket struct {
	Socket
	writes *atomic.Int64
}

func (c *countedSocket) Write(b []byte) (int, error) {
	c.writes.Add(1)
	return c.Socket.Write(b)
}

// TestSplitsTravelTogether checks that a pipeline of checks with keys on two nodes takes a
// few round trips in all, not some for each check.
func TestSplitsTravelTogether(t *testing.T) {
	const checks = 1000
	c := redistest.StartCluster(t, 3, 0)
	var writes atomic.Int64
	s := openThrough(t, Options{}, func(s Socket) Socket { return &countedSocket{s, &writes} }, c.Addrs()...)
	set := closedPair(t, "1000000/h")
	tenant, slot, to := movingTenant(t, c)
	ask := func(ops int) (undecided int) {
		var b limit.Buffer
		for i := range ops {
			set.Resolve(&limit.Request{Tenant: tenant, Op: fmt.Sprint("x", i), Cost: 1}, testAddrs, time.Now().UnixMicro(), &b)
		}
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		for _, it := range b.Items {
			if it.Source == limit.SourceNone {
				undecided++
			}
		}
		return undecided
	}
	ask(10) // ten keys exist, the others are created during the move
	moved := 0
	c.MoveSlot(t, slot, to, func() {
		if moved++; moved != 2 { // one key has moved
			return
		}
		before := writes.Load()
		if n := ask(checks); n > 0 {
			t.Errorf("%d items are undecided: %+v", n, s.Stats())
		}
		if n := writes.Load() - before; n > checks/4 {
			t.Errorf("%d checks were sent in %d pieces", checks, n)
		}
	})
}

// TestPartThatCannotBeAsked checks that the units granted to a part of a call are refunded
// if another part is not decided in time.
func TestPartThatCannotBeAsked(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0, "--cluster-node-timeout", "60000")
	s := open(t, c.Addrs()...)
	set := closedPair(t, "100/366d")
	tenant, slot, to := movingTenant(t, c)
	ask := func(timeout time.Duration) []limit.Item {
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: tenant, Op: "x", Cost: 1}, testAddrs, time.Now().UnixMicro(), &b)
		s.Take(limit.DecisionTime{Start: time.Now(), Timeout: timeout}, b.Items, b.Calls)
		return b.Items
	}
	ask(5 * time.Second)
	moved, lost := 0, int64(0)
	c.MoveSlot(t, slot, to, func() {
		if moved++; moved != 2 {
			return
		}
		to.Stop()
		before := s.Stats().RefundsLost
		if it := ask(100 * time.Millisecond)[0]; it.Source != limit.SourceNone {
			t.Errorf("decided by %s although a part could not be asked", it.Source)
		}
		lost = s.Stats().RefundsLost - before
		to.Cont()
	})
	var items []limit.Item
	redistest.Eventually(t, 10*time.Second, "the store to decide", func() bool {
		items = ask(5 * time.Second)
		return items[0].Source == limit.SourceStore
	})
	if items[0].Remaining < 98 && items[1].Remaining < 98 {
		t.Errorf("after two checks that were admitted: %+v and %+v", items[0].Verdict, items[1].Verdict)
	}
	if lost != 1 {
		t.Errorf("%d buckets may have lost units, want that of the part that was not answered", lost)
	}
}

// TestRedirectIsAnAnswer checks that a node which answers the probe with a redirect counts
// as healthy, also if the redirect is followed.
func TestRedirectIsAnAnswer(t *testing.T) {
	for _, onError := range []string{"open", "closed"} {
		well := make(chan struct{})
		f := startFake(t, nil, func(c net.Conn, _ []string) error {
			reply := "-OOM too much\r\n"
			select {
			case <-well:
				reply = "-MOVED 1 127.0.0.1:1\r\n"
			default:
			}
			_, err := io.WriteString(c, reply)
			return err
		})
		s := openWithOptions(t, Options{Cooldown: 50 * time.Millisecond}, f.addr())
		set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d", OnError: onError})
		untilState(t, s, set, "t", breaker.Open)
		close(well)
		untilState(t, s, set, "t", breaker.Closed)
	}
}
