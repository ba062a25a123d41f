package cluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// split makes every bucket of a set's limits split.
func split(set *limit.Set, parts int) *limit.Set {
	for _, l := range set.Limits {
		l.Shards = parts
	}
	return set
}

// rush asks stores for checks of a request, from callers each, until so many were
// made, and returns how many were granted.
func rush(t *testing.T, stores []*Store, set *limit.Set, req limit.Request, checks, callers int) int64 {
	t.Helper()
	var granted, made atomic.Int64
	var wg sync.WaitGroup
	for _, s := range stores {
		for range callers {
			wg.Go(func() {
				for made.Add(1) <= int64(checks) {
					var b limit.Buffer
					set.Resolve(&req, testAddrs, 0, &b)
					s.Take(limit.Moment{Start: time.Now(), Timeout: 10 * time.Second}, b.Items, b.Calls)
					ok := true
					for i := range b.Items {
						if b.Items[i].Source != limit.SourceStore {
							t.Errorf("undecided: %v", s.Stats().Trouble)
							return
						}
						ok = ok && b.Items[i].Allowed
					}
					if ok {
						granted.Add(1)
					}
				}
			})
		}
	}
	wg.Wait()
	return granted.Load()
}

// partsOf returns the keys of parts on nodes.
func partsOf(t *testing.T, nodes ...*redistest.Node) (keys []string) {
	t.Helper()
	for _, n := range nodes {
		found, err := client(t, n.Addr).Keys(t.Context(), limit.PartPrefix+"*").Result()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, found...)
	}
	return keys
}

// TestSplitMintsNothing: several proxies ask a split bucket for more than it has. It
// never gives more, and keeps no more than its parts may hold. A reset reaches them.
func TestSplitMintsNothing(t *testing.T) {
	const units, parts = 20_000, 4
	c := redistest.StartCluster(t, 2, 0)
	set := split(compile(t, spec{ID: "split", By: []string{"tenant"}, Rate: fmt.Sprint(units, "/366d")}), parts)
	stores := []*Store{open(t, c.Nodes[0].Addr), open(t, c.Nodes[1].Addr)}
	req := limit.Request{Tenant: "split", Cost: 1}
	granted := rush(t, stores, set, req, 3*units/2, 8)
	if granted > units || granted < units*95/100 {
		t.Errorf("granted %d of %d units", granted, units)
	}
	keys := partsOf(t, c.Nodes...)
	slots := map[uint16]bool{}
	for _, k := range keys {
		tag, _, _ := strings.Cut(k, "}")
		slots[limit.Slot([]byte(tag+"}"))] = true
	}
	if len(keys) != parts || len(slots) != parts {
		t.Errorf("%d parts in %d slots: %q", len(keys), len(slots), keys)
	}
	for _, n := range c.Nodes {
		redistest.AssertAllKeysExpire(t, n)
	}
	if _, err := stores[0].Reset(context.Background(), "split", ""); err != nil {
		t.Fatal(err)
	}
	if keys := partsOf(t, c.Nodes...); len(keys) != 0 {
		t.Errorf("after a reset: %q", keys)
	}
}

// TestSplitSparesTheBucket: most checks of a split bucket never reach it.
func TestSplitSparesTheBucket(t *testing.T) {
	const checks = 4000
	node := redistest.Start(t)
	s, admin := open(t, node.Addr), client(t, node.Addr)
	set := split(compile(t, spec{ID: "spared", By: []string{"tenant"}, Rate: "1000000/366d"}), 4)
	req := limit.Request{Tenant: "spared", Cost: 1}
	if granted := rush(t, []*Store{s}, set, req, checks, 8); granted != checks {
		t.Errorf("%d of %d granted", granted, checks)
	}
	stats := admin.Info(t.Context(), "commandstats").Val()
	if n := calls(stats, "hget") + calls(stats, "hmget"); n > checks/20 {
		t.Errorf("the bucket itself was read %d times for %d checks", n, checks)
	}
}

// TestSplitAllOrNothing: what a part granted goes back when another bucket of the
// request denies, and a request that the other bucket would admit is denied where
// neither the bucket nor its parts have anything.
func TestSplitAllOrNothing(t *testing.T) {
	node := redistest.SharedNode(t)
	s := open(t, node.Addr)
	set := compile(t,
		spec{ID: "wide", By: []string{"tenant"}, Rate: "1000/366d"},
		spec{ID: "narrow", By: []string{"tenant", "op"}, Rate: "300/366d"},
	)
	set.LimitByID("wide").Shards = 2
	for i, op := range []string{"a", "b"} {
		req := limit.Request{Tenant: "split-all", Op: op, Cost: 1}
		if granted := rush(t, []*Store{s}, set, req, 500, 4); granted != 300 {
			t.Errorf("op %d: %d granted, want the 300 of the narrow limit", i, granted)
		}
	}
	// 400 are left, some of them in parts, and none was lost: refunds may be on their way.
	req := limit.Request{Tenant: "split-all", Op: "c", Cost: 1}
	if granted := rush(t, []*Store{s}, set, req, 350, 1); granted != 300 {
		t.Errorf("op c: %d granted", granted)
	}
	req.Op = "d"
	if granted := rush(t, []*Store{s}, set, req, 300, 1); granted > 100 || granted < 50 {
		t.Errorf("op d: %d granted, want what is left of the wide limit: 100, but for what lies in parts", granted)
	}
}

// TestSplitByHeat: a bucket that gets more checks than its master can decide is split by
// itself, and whole again when it gets few.
func TestSplitByHeat(t *testing.T) {
	c := redistest.StartCluster(t, 2, 0)
	s := open(t, c.Nodes[0].Addr)
	s.splits.hotChecks, s.splits.crowdedTime = 1000, 0
	set := compile(t, spec{ID: "hot", By: []string{"tenant"}, Rate: "1000000/s"})
	var b limit.Buffer
	req := limit.Request{Tenant: "hot", Cost: 1}
	set.Resolve(&req, testAddrs, 0, &b)
	for late := time.Now().Add(20 * time.Second); s.Split(&b.Items[0]) == 0; {
		if time.Now().After(late) {
			t.Fatal("it is not split")
		}
		rush(t, []*Store{s}, set, req, 10_000, 1500)
	}
	if n := s.Split(&b.Items[0]); n != 2*partsForMaster {
		t.Errorf("%d parts", n)
	}
	rush(t, []*Store{s}, set, req, 5000, 100)
	if keys := partsOf(t, c.Nodes...); len(keys) == 0 {
		t.Error("no part was used")
	}
	for range coldTicks + 1 {
		s.splits.tick()
	}
	if n := s.Split(&b.Items[0]); n != 0 || s.splits.hot.Load() != 0 {
		t.Errorf("cold, and still in %d parts", n)
	}
	other := limit.Request{Tenant: "rare", Cost: 1}
	b = limit.Buffer{}
	set.Resolve(&other, testAddrs, 0, &b)
	rush(t, []*Store{s}, set, other, 500, 1)
	if s.Split(&b.Items[0]) != 0 {
		t.Error("a bucket with few checks is split")
	}
}
