package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
)

// tenantsWhere returns n tenants that no other test uses, in slots for which pass is true.
func tenantsWhere(t *testing.T, n int, pass func(slot int) bool) []string {
	t.Helper()
	var names []string
	fresh := storetest.Fresh(t)
	for i := 0; len(names) < n; i++ {
		name := fmt.Sprintf("%s-%d", fresh, i)
		if pass(int(limit.HashSlot([]byte(limit.TenantKey(name))))) {
			names = append(names, name)
		}
	}
	return names
}

// TestSlotMovesUnderLoad moves a slot to another master and back, key by key, while its
// tenants and others are checked in the same pipelines and the same batches. Meanwhile
// calls on keys that have moved, or are not there yet, stay undecided. Every bucket loses
// exactly the units that the store admitted, on both of its levels, and tenants of other
// slots are not affected.
func TestSlotMovesUnderLoad(t *testing.T) {
	slotMovesEachWay(t, corners, 1)
}

// slotMovesEachWay moves a slot there and back a number of times, for each of some ways to
// batch calls.
func slotMovesEachWay(t *testing.T, ways []Options, times int) {
	t.Helper()
	c := redistest.StartCluster(t, 3, 0)
	for _, opts := range ways {
		t.Run(wayName(opts), func(t *testing.T) { slotMoves(t, c, openWithOptions(t, opts, c.Addrs()...), times) })
	}
	redistest.AssertAllKeysExpire(t, c.Nodes...)
}

func slotMoves(t *testing.T, c *redistest.Cluster, s *Store, times int) {
	t.Helper()
	// The masters of the first slot and of the last.
	from, to := c.NodeForSlot(t, 0), c.NodeForSlot(t, limit.NumHashSlots-1)
	slot := 0
	tenantsWhere(t, 1, func(of int) bool { slot = of; return of < limit.NumHashSlots/4 })
	moving := tenantsWhere(t, 3, func(of int) bool { return of == slot })
	var staying []string
	for quarter := range 4 {
		staying = append(staying, tenantsWhere(t, 2, func(of int) bool { return of != slot && of*4/limit.NumHashSlots == quarter })...)
	}
	ld := startLoad(t, s, 5*time.Second, append(moving, staying...)...)
	ld.advance(20 * loadPipeline)
	for range times {
		for _, target := range []*redistest.Node{to, from} {
			c.MoveSlot(t, slot, target, func() { ld.advance(6 * loadPipeline) })
			for _, tenant := range moving {
				ld.peek(limit.Request{Tenant: tenant, Op: "GET /a", Cost: 1})
			}
			ld.advance(6 * loadPipeline)
		}
	}
	// Without a timeout or a lost connection every unit must be accounted for.
	if excess, st := ld.balance(), s.Stats(); excess != 0 || st.RefundsLost != 0 {
		t.Errorf("the buckets have lost %d units more than were admitted: %+v", excess, st)
	}
	refused := 0
	for _, tenant := range moving {
		refused += ld.backstop.of(tenant)
	}
	if refused == 0 {
		t.Error("no call was undecided: the slot did not move under load")
	}
	for _, tenant := range staying {
		if n := ld.backstop.of(tenant); n > 0 {
			t.Errorf("%s does not live in the slot that moved, but %d of its calls were left undecided: %+v", tenant, n, s.Stats())
		}
	}
	t.Logf("%d checks, %d undecided", ld.checks.Load(), refused)
}
