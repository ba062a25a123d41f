package redistest

import (
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

// MoveSlot gives a slot to another master while the cluster goes on serving, as
// redis-cli --cluster reshard does: the slot is marked as migrating on one side
// and as importing on the other, its keys go over one by one, and then everybody
// is told whose it is. Between is called when the marks are set and after each
// key, for what a test wants to happen meanwhile.
func (c *Cluster) MoveSlot(tb testing.TB, slot int, to *Node, between func()) {
	tb.Helper()
	from := c.NodeForSlot(tb, slot)
	fromID, toID := from.mustAsk(tb, "CLUSTER", "MYID"), to.mustAsk(tb, "CLUSTER", "MYID")
	to.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	from.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	between()
	for {
		keys, err := from.KeysInSlot(lasting(tb), slot)
		if err != nil {
			tb.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			from.mustAsk(tb, "MIGRATE", "127.0.0.1", to.Port, key, 0, servers.ControlTimeout.Milliseconds())
			between()
		}
	}
	// The new owner first: there must not be a moment at which a third one is
	// asked and nobody has the slot.
	to.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	from.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	if err := servers.Await("everybody to know the slot's owner", func() error { return c.CheckOwner(lasting(tb), slot, to.Node) }); err != nil {
		tb.Fatal(err)
	}
}
