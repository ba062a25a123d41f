package servers

import (
	"context"
	"fmt"
)

// Announce makes every node send clients to another port than its own, ports[i] for
// Nodes[i], and returns when all nodes know the ports. The cluster bus does not change;
// replicas follow their primaries through those ports. A node that is started again
// announces its own port.
func (c *Cluster) Announce(ctx context.Context, ports []int) error {
	for i, node := range c.Nodes {
		if _, err := node.Ask(ctx, "CONFIG", "SET", "cluster-announce-port", ports[i]); err != nil {
			return err
		}
	}
	err := Await("all nodes to know the announced ports", func() error {
		for _, node := range c.Nodes {
			if err := c.checkAnnounced(ctx, node, ports); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.AwaitHealthy(ctx)
}

// checkAnnounced returns nil if the node knows which port each node announces.
func (c *Cluster) checkAnnounced(ctx context.Context, node *Node, ports []int) error {
	view, err := node.view(ctx)
	if err != nil {
		return err
	}
	for i, other := range c.Nodes {
		for _, seen := range view {
			if seen.port == other.Port && seen.announced != ports[i] {
				return fmt.Errorf("%s sends clients of port %d to %d, not to %d", node.Addr, other.Port, seen.announced, ports[i])
			}
		}
	}
	return nil
}
