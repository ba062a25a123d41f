package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// slotCount is the number of hash slots of a Redis Cluster.
const slotCount = 16384

// Cluster is a running Redis Cluster.
type Cluster struct {
	// Nodes are the servers as they were started: first the masters in the order of their
	// slots, then the replicas of the first master, of the second and so on. After a
	// failover use Masters and Replicas.
	Nodes []*Node

	masters, replicasPer int
}

// StartCluster starts a cluster whose masters share the slots evenly, each with the given
// number of replicas, with a folder for each node below folder. It returns when every
// node reports the cluster as healthy, which takes about two seconds. Further args are
// passed on to every server.
func StartCluster(ctx context.Context, folder string, masters, replicasPer int, args ...string) (*Cluster, error) {
	cluster := &Cluster{masters: masters, replicasPer: replicasPer}
	if err := cluster.start(ctx, folder, args); err != nil {
		return nil, errors.Join(err, cluster.Close())
	}
	return cluster, nil
}

func (c *Cluster) start(ctx context.Context, folder string, args []string) error {
	for i := range c.masters * (1 + c.replicasPer) {
		home := filepath.Join(folder, "node-"+strconv.Itoa(i))
		if err := os.Mkdir(home, 0o700); err != nil {
			return fmt.Errorf("create node folder: %w", err)
		}
		node, err := startNode(home, clusterPorts, append(clusterArgs(), args...))
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, node)
	}
	if err := c.form(ctx); err != nil {
		return fmt.Errorf("form cluster: %w", err)
	}
	return c.AwaitHealthy(ctx)
}

// Join starts a master without hash slots, with its folder below folder, that joins the
// cluster. It becomes the last of Nodes.
func (c *Cluster) Join(ctx context.Context, folder string) (*Node, error) {
	node, err := startNode(folder, clusterPorts, clusterArgs())
	if err != nil {
		return nil, err
	}
	c.Nodes = append(c.Nodes, node)
	if _, err := node.Ask(ctx, "CLUSTER", "SET-CONFIG-EPOCH", len(c.Nodes)); err != nil {
		return nil, err
	}
	if _, err := c.Nodes[0].Ask(ctx, "CLUSTER", "MEET", "127.0.0.1", node.Port, node.Port+busPortOffset); err != nil {
		return nil, err
	}
	if err := Await("the nodes to know the new one", func() error { return c.checkAcquainted(ctx) }); err != nil {
		return nil, err
	}
	return node, c.AwaitHealthy(ctx)
}

// clusterArgs are the settings of every cluster node. The node timeout is short enough to
// test a failover, and long enough to avoid an accidental one on a loaded machine.
func clusterArgs() []string {
	return []string{
		"--cluster-enabled", "yes",
		"--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "2000",
		"--cluster-announce-ip", "127.0.0.1",
	}
}

// Close ends every node.
func (c *Cluster) Close() error {
	var problems []error
	for _, node := range c.Nodes {
		problems = append(problems, node.Close())
	}
	return errors.Join(problems...)
}

// primaryOf returns the index of the master that the node at index i was
// started to replicate.
func (c *Cluster) primaryOf(i int) int {
	return (i - c.masters) / c.replicasPer
}

// Addrs returns the address of every node, for a client to start from.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr
	}
	return addrs
}

// Masters returns the nodes that are masters of slots now.
func (c *Cluster) Masters(ctx context.Context) ([]*Node, error) {
	return c.pick(ctx, func(s seenNode) bool { return s.has("master") && len(s.slots) > 0 })
}

// Replicas returns the nodes that are replicas now and are not marked as failed.
func (c *Cluster) Replicas(ctx context.Context) ([]*Node, error) {
	return c.pick(ctx, func(s seenNode) bool { return s.has("slave") && !s.has("fail") })
}

// NodeForSlot returns the master of a slot.
func (c *Cluster) NodeForSlot(ctx context.Context, slot int) (*Node, error) {
	owners, err := c.pick(ctx, func(s seenNode) bool { return s.has("master") && s.owns(slot) })
	if err != nil {
		return nil, err
	}
	if len(owners) != 1 {
		return nil, fmt.Errorf("find master of slot %d: %d nodes have it", slot, len(owners))
	}
	return owners[0], nil
}

// pick returns the nodes that pass, in the order of Nodes.
func (c *Cluster) pick(ctx context.Context, pass func(seenNode) bool) ([]*Node, error) {
	view, err := c.latestView(ctx)
	if err != nil {
		return nil, err
	}
	var picked []*Node
	for _, node := range c.Nodes {
		if slices.ContainsFunc(view, func(s seenNode) bool { return s.port == node.Port && pass(s) }) {
			picked = append(picked, node)
		}
	}
	return picked, nil
}

// latestView returns the view of the running node that knows the highest epoch: a node
// that was away does not know its successor yet.
func (c *Cluster) latestView(ctx context.Context) ([]seenNode, error) {
	var (
		latest *Node
		newest = -1
	)
	for _, node := range c.Nodes {
		if !node.Answers() {
			continue
		}
		fields, err := node.Fields(ctx, "CLUSTER", "INFO")
		if err != nil {
			continue // it may be hanging, loading or on its way down
		}
		epoch, err := strconv.Atoi(fields["cluster_current_epoch"])
		if err == nil && epoch > newest {
			latest, newest = node, epoch
		}
	}
	if latest == nil {
		return nil, errors.New("ask for view: no node of the cluster answers")
	}
	return latest.view(ctx)
}

// FirstOwner returns the index of the master that got a hash slot when the cluster was
// started.
func (c *Cluster) FirstOwner(slot uint16) int {
	for i := range c.masters - 1 {
		if int(slot) < slotCount*(i+1)/c.masters {
			return i
		}
	}
	return c.masters - 1
}
