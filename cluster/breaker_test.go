package cluster

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// askOf resolves a check of a tenant and has the store decide it within timeout. It returns
// the item.
func askOf(s *Store, set *limit.Set, tenant string, timeout time.Duration) *limit.Item {
	var b limit.Buffer
	set.Resolve(&limit.Request{Tenant: tenant, Cost: 1}, testAddrs, 0, &b)
	s.Take(limit.DecisionTime{Start: time.Now(), Timeout: timeout}, b.Items, b.Calls)
	return &b.Items[0]
}

// untilState checks a tenant until the breaker of its shard is in a state.
func untilState(t *testing.T, s *Store, set *limit.Set, tenant string, want breaker.State) {
	t.Helper()
	var b limit.Buffer
	set.Resolve(&limit.Request{Tenant: tenant, Cost: 1}, testAddrs, 0, &b)
	n := s.top.Load().nodeOf(&b.Items[0])
	for deadline := time.Now().Add(10 * time.Second); n.breaker.State() != want; {
		if time.Now().After(deadline) {
			t.Fatalf("the breaker of %s is %s, want %s: %+v", n.addr, n.breaker.State(), want, n.breaker.Status())
		}
		askOf(s, set, tenant, 5*time.Millisecond)
	}
}

// TestBreakerOfOneShard checks that a hung master costs nothing after a few calls: neither
// its own callers nor the others. When it recovers it receives calls again.
func TestBreakerOfOneShard(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0, "--cluster-require-full-coverage", "no", "--cluster-node-timeout", "60000")
	var outages atomic.Int64
	var longest atomic.Int64
	opts := Options{Cooldown: 100 * time.Millisecond, OnOutage: func(d time.Duration) {
		outages.Add(1)
		longest.Store(int64(d))
	}}
	addrs := []string{c.Nodes[0].Addr, c.Nodes[1].Addr, c.Nodes[2].Addr}
	s := openWithOptions(t, opts, addrs...)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"})
	sick, well := "", ""
	for i := 0; sick == "" || well == ""; i++ {
		tenant := fmt.Sprint("breaker-", i)
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: tenant, Cost: 1}, testAddrs, 0, &b)
		if s.Locate(&b.Items[0]) == c.Nodes[0].Addr {
			sick = tenant
		} else {
			well = tenant
		}
	}
	c.Nodes[0].Stop()
	stopped := time.Now()
	untilState(t, s, set, sick, breaker.Open)
	sent := s.Stats().Undecided[KindTimeout] + s.Stats().Undecided[KindNetwork]
	refused := s.Stats().Undecided[KindBreaker]
	for range 1000 {
		if it := askOf(s, set, sick, 5*time.Millisecond); it.Source != limit.SourceNone {
			t.Fatalf("the sick shard decided: %+v", it)
		}
		if it := askOf(s, set, well, 5*time.Second); it.Source != limit.SourceStore {
			t.Fatalf("a well shard did not decide: %v", s.Stats().Undecided)
		}
	}
	if n := s.Stats().Undecided[KindBreaker] - refused; n < 990 {
		t.Errorf("%d of 1000 calls were kept away from the sick shard", n)
	}
	if n := s.Stats().Undecided[KindTimeout] + s.Stats().Undecided[KindNetwork] - sent; n > 10 {
		t.Errorf("%d of 1000 calls were sent to the sick shard", n)
	}
	for _, sh := range s.Shards() {
		if is := sh.Addr == c.Nodes[0].Addr; is == (sh.State == breaker.Closed) || is == (sh.Err == nil) || is == sh.Probe.IsZero() {
			t.Errorf("%+v", sh)
		}
	}
	c.Nodes[0].Cont()
	untilState(t, s, set, sick, breaker.Closed)
	if it := askOf(s, set, sick, 5*time.Second); it.Source != limit.SourceStore {
		t.Errorf("after the recovery: %+v", it)
	}
	if took := time.Duration(longest.Load()); outages.Load() != 1 || took <= 0 || took > time.Since(stopped) {
		t.Errorf("%d outages were reported, the last of %v", outages.Load(), took)
	}
}

// TestBreakerAndPeek checks that a peek neither closes a breaker nor uses up its probe.
func TestBreakerAndPeek(t *testing.T) {
	node := redistest.Start(t)
	s := openWithOptions(t, Options{Cooldown: 10 * time.Millisecond}, node.Addr)
	set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"})
	if !s.Answers() {
		t.Error("a store that is well does not answer")
	}
	node.Stop()
	untilState(t, s, set, "t", breaker.Open)
	if s.Answers() {
		t.Error("a store whose breaker is open answers")
	}
	n := s.top.Load().single
	for time.Now().Before(n.breaker.Status().Probe) {
		askOf(s, set, "t", 5*time.Millisecond)
	}
	var b limit.Buffer
	set.Resolve(&limit.Request{Tenant: "t", Cost: 1}, testAddrs, 0, &b)
	s.Peek(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
	if b.Items[0].Source != limit.SourceNone || s.Stats().Undecided[KindBreaker] == 0 {
		t.Errorf("%+v %v", b.Items[0], s.Stats().Undecided)
	}
	node.Cont()
	untilState(t, s, set, "t", breaker.Closed)
}
