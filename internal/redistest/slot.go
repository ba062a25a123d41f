package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"
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
		keys, err := from.keysInSlot(lasting(tb), slot)
		if err != nil {
			tb.Fatal(err)
		}
		if len(keys) == 0 {
			break
		}
		for _, key := range keys {
			from.mustAsk(tb, "MIGRATE", "127.0.0.1", to.Port, key, 0, controlTimeout.Milliseconds())
			between()
		}
	}
	// The new owner first: there must not be a moment at which a third one is
	// asked and nobody has the slot.
	to.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	from.mustAsk(tb, "CLUSTER", "SETSLOT", slot, "NODE", toID)
	if err := await("everybody to know the slot's owner", func() error { return c.checkOwner(lasting(tb), slot, to) }); err != nil {
		tb.Fatal(err)
	}
}

// keysInSlot returns some of the keys that the node holds of a slot.
func (n *Node) keysInSlot(ctx context.Context, slot int) ([]string, error) {
	client := n.control()
	defer func() { _ = client.Close() }()
	keys, err := client.ClusterGetKeysInSlot(ctx, slot, scanCount).Result()
	if err != nil {
		return nil, fmt.Errorf("ask %s for the keys of slot %d: %w", n.Addr, slot, err)
	}
	return keys, nil
}

// checkOwner returns nil if every node takes one for the owner of a slot, and
// nobody thinks that it is on its way.
func (c *Cluster) checkOwner(ctx context.Context, slot int, owner *Node) error {
	for _, node := range c.Nodes {
		view, err := node.view(ctx)
		if err != nil {
			return err
		}
		for _, seen := range view {
			if seen.owns(slot) != (seen.port == owner.Port) {
				return fmt.Errorf("%s: slot %d belongs to port %d is %v", node.Addr, slot, seen.port, seen.owns(slot))
			}
			if strings.Contains(strings.Join(seen.slots, " "), fmt.Sprintf("[%d-", slot)) {
				return fmt.Errorf("%s: slot %d is on its way", node.Addr, slot)
			}
		}
	}
	return nil
}
