package cluster

import (
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
