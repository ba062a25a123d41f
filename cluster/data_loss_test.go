package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestResets checks that masters that come back empty are counted, once by all proxies.
// Masters that only restart, or whose slots move, are not counted.
func TestResets(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	opts := Options{ReloadInterval: 50 * time.Millisecond}
	a, b := openWithOptions(t, opts, c.Addrs()...), openWithOptions(t, opts, c.Addrs()...)
	resets := func() int64 { return a.Stats().Resets + b.Stats().Resets }
	reloads := func(n int64) {
		wasA, wasB := a.Stats().Reloads, b.Stats().Reloads
		redistest.Eventually(t, 10*time.Second, "topologies to be asked for", func() bool {
			return a.Stats().Reloads >= wasA+n && b.Stats().Reloads >= wasB+n
		})
	}
	marked(t, c)
	reloads(2)
	c.MoveSlot(t, 0, c.Nodes[2], func() {})
	c.MoveSlot(t, 0, c.Nodes[0], func() {})
	reloads(2)
	if n := resets(); n != 0 {
		t.Fatalf("%d masters count as reset, but the store lost nothing", n)
	}
	c.Nodes[1].CLI(t, "FLUSHALL")
	redistest.Eventually(t, 10*time.Second, "the reset", func() bool { return resets() == 1 })
	c.Nodes[2].Kill()
	c.Nodes[2].Restart() // it keeps nothing on disk
	redistest.Eventually(t, 20*time.Second, "the second reset", func() bool { return resets() == 2 })
	reloads(3)
	if n := resets(); n != 2 {
		t.Errorf("%d masters were reset, want 2", n)
	}
	redistest.AssertAllKeysExpire(t, c.Nodes...)
}

// marked waits until each master has its mark.
func marked(t *testing.T, c *redistest.Cluster) {
	t.Helper()
	redistest.Eventually(t, 10*time.Second, "the marks of all masters", func() bool {
		for _, n := range c.Nodes {
			if !strings.Contains(n.CLI(t, "KEYS", markPrefix+"*"), markPrefix) {
				return false
			}
		}
		return true
	})
}

// TestResetBeforeNewProxy: a proxy that starts during an outage and is the first to reach
// the empty masters leaves their resets to a proxy that was there before.
func TestResetBeforeNewProxy(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	old, fresh := unused(t, time.Hour, c.Addrs()...), unused(t, time.Hour, c.Addrs()...)
	old.checkDataLoss(t.Context(), true)
	marked(t, c)
	for _, n := range c.Nodes {
		n.CLI(t, "FLUSHALL")
	}
	fresh.checkDataLoss(t.Context(), false)
	old.checkDataLoss(t.Context(), false)
	fresh.checkDataLoss(t.Context(), false)
	if of, by := old.Stats().Resets, fresh.Stats().Resets; of != 3 || by != 0 {
		t.Errorf("the proxies count %d and %d resets, want 3 and 0", of, by)
	}
}

// TestMarkOfNewMaster: a proxy that waited long enough for others creates the marks itself.
func TestMarkOfNewMaster(t *testing.T) {
	c := redistest.StartCluster(t, 3, 0)
	s := unused(t, time.Nanosecond, c.Addrs()...)
	s.checkDataLoss(t.Context(), false)
	s.checkDataLoss(t.Context(), false)
	marked(t, c)
	if n := s.Stats().Resets; n != 0 {
		t.Errorf("%d masters count as reset, but they are new", n)
	}
}

// unused opens a store that does not run: a test makes each step itself.
func unused(t *testing.T, interval time.Duration, addrs ...string) *Store {
	t.Helper()
	s, err := Open(t.Context(), Options{Addrs: addrs, ReloadInterval: interval, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second, ToLoop: toLoop})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
