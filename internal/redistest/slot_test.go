package redistest

import (
	"fmt"
	"testing"
)

func TestMovedSlotTakesItsKeysAlong(t *testing.T) {
	t.Parallel()
	cluster := StartCluster(t, 3, 0)
	const tag = "{moved}"
	slot := cluster.KeySlot(t, tag)
	from := cluster.NodeForSlot(t, slot)
	to := cluster.Nodes[0]
	if from == to {
		to = cluster.Nodes[1]
	}
	const keys = 7
	for i := range keys {
		if got := from.CLI(t, "SET", fmt.Sprint(tag, i), "1", "PX", "60000"); got != "OK" {
			t.Fatalf("SET = %q", got)
		}
	}
	for _, step := range []struct{ from, to *Node }{{from, to}, {to, from}} {
		calls := 0
		cluster.MoveSlot(t, slot, step.to, func() {
			// The old owner still serves the keys that have not moved, and not those that
			// have.
			got := step.from.CLI(t, "CLUSTER", "COUNTKEYSINSLOT", fmt.Sprint(slot))
			if want := fmt.Sprint(keys - calls); got != want {
				t.Errorf("after %d keys have gone %s are left, want %s", calls, got, want)
			}
			calls++
		})
		if calls != keys+1 {
			t.Errorf("called %d times between the steps, want %d", calls, keys+1)
		}
		if got := cluster.NodeForSlot(t, slot); got != step.to {
			t.Errorf("the slot belongs to %s, want %s", got.Addr, step.to.Addr)
		}
		for i := range keys {
			if got := step.to.CLI(t, "GET", fmt.Sprint(tag, i)); got != "1" {
				t.Errorf("GET = %q on the new owner", got)
			}
		}
	}
	if n := AssertAllKeysExpire(t, cluster.Nodes...); n != keys {
		t.Errorf("%d keys, want %d", n, keys)
	}
}
