package servers

import (
	"context"
	"fmt"
	"strings"
)

// slotKeys is how many keys of a hash slot one request returns.
const slotKeys = 1000

// KeysInSlot returns some of the keys that the node holds of a slot.
func (n *Node) KeysInSlot(ctx context.Context, slot int) ([]string, error) {
	client := n.Client()
	defer func() { _ = client.Close() }()
	keys, err := client.ClusterGetKeysInSlot(ctx, slot, slotKeys).Result()
	if err != nil {
		return nil, fmt.Errorf("ask %s for the keys of slot %d: %w", n.Addr, slot, err)
	}
	return keys, nil
}

// CheckOwner returns nil if every node sees owner as the owner of a hash slot, and none
// sees the hash slot as migrating.
func (c *Cluster) CheckOwner(ctx context.Context, slot int, owner *Node) error {
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
