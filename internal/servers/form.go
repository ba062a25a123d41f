package servers

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// form turns nodes that don't know each other into a cluster. It replaces redis-cli
// --cluster create, which takes a second longer and insists on three masters.
func (c *Cluster) form(ctx context.Context) error {
	// A node accepts an epoch only as long as it knows no other node, so all epochs are
	// set before the first CLUSTER MEET.
	for i, node := range c.Nodes {
		if err := c.settle(ctx, i, node); err != nil {
			return err
		}
	}
	for i, node := range c.Nodes {
		for _, other := range c.Nodes[i+1:] {
			if _, err := node.Ask(ctx, "CLUSTER", "MEET", "127.0.0.1", other.Port, other.Port+busPortOffset); err != nil {
				return err
			}
		}
	}
	if err := Await("the nodes to know each other", func() error { return c.checkAcquainted(ctx) }); err != nil {
		return err
	}
	return c.attachReplicas(ctx)
}

// settle gives a node an epoch of its own, so that no two nodes have to resolve a
// conflict later, and a master its hash slots.
func (c *Cluster) settle(ctx context.Context, i int, node *Node) error {
	if _, err := node.Ask(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
		return err
	}
	if i >= c.masters {
		return nil
	}
	words := []any{"CLUSTER", "ADDSLOTS"}
	for slot := slotCount * i / c.masters; slot < slotCount*(i+1)/c.masters; slot++ {
		words = append(words, slot)
	}
	_, err := node.Ask(ctx, words...)
	return err
}

// checkAcquainted returns nil if every node knows every other one by its id.
func (c *Cluster) checkAcquainted(ctx context.Context) error {
	for _, node := range c.Nodes {
		view, err := node.view(ctx)
		if err != nil {
			return err
		}
		if len(view) != len(c.Nodes) {
			return fmt.Errorf("%s knows %d of %d nodes", node.Addr, len(view), len(c.Nodes))
		}
		for _, seen := range view {
			if seen.has("handshake") {
				return fmt.Errorf("%s has yet to meet port %d", node.Addr, seen.port)
			}
		}
	}
	return nil
}

// attachReplicas assigns each replica its primary.
func (c *Cluster) attachReplicas(ctx context.Context) error {
	for i := c.masters; i < len(c.Nodes); i++ {
		id, err := c.Nodes[c.primaryOf(i)].Ask(ctx, "CLUSTER", "MYID")
		if err != nil {
			return err
		}
		if _, err := c.Nodes[i].Ask(ctx, "CLUSTER", "REPLICATE", strings.TrimSpace(id)); err != nil {
			return err
		}
	}
	return nil
}

// AwaitHealthy waits until every node runs, all agree on the roles, all hash slots are
// served and every replica is linked.
func (c *Cluster) AwaitHealthy(ctx context.Context) error {
	return Await("a healthy cluster", func() error {
		for _, node := range c.Nodes {
			if err := c.checkHealthy(ctx, node); err != nil {
				return err
			}
		}
		return nil
	})
}

// checkHealthy returns nil if the node serves every hash slot, sees all nodes up and the
// right number of them as replicas, and is itself linked if it is one.
func (c *Cluster) checkHealthy(ctx context.Context, node *Node) error {
	if !node.Answers() {
		return errors.New(node.Addr + " does not run")
	}
	fields, err := node.Fields(ctx, "CLUSTER", "INFO")
	if err != nil {
		return err
	}
	if fields["cluster_state"] != "ok" || fields["cluster_slots_ok"] != "16384" {
		return fmt.Errorf("%s reports state %s with %s slots",
			node.Addr, fields["cluster_state"], fields["cluster_slots_ok"])
	}
	view, err := node.view(ctx)
	if err != nil {
		return err
	}
	return c.checkView(ctx, node, view)
}

func (c *Cluster) checkView(ctx context.Context, node *Node, view []seenNode) error {
	replicas := 0
	for _, seen := range view {
		if !seen.up() {
			return fmt.Errorf("%s sees port %d as %v, link %s", node.Addr, seen.port, seen.flags, seen.link)
		}
		if !seen.has("slave") {
			continue
		}
		replicas++
		if seen.has("myself") {
			if err := node.CheckLinkUp(ctx); err != nil {
				return err
			}
		}
	}
	if wanted := c.masters * c.replicasPer; replicas != wanted || len(view) != len(c.Nodes) {
		return fmt.Errorf("%s sees %d nodes with %d replicas, not %d with %d",
			node.Addr, len(view), replicas, len(c.Nodes), wanted)
	}
	return nil
}
