package redistest

import (
	"slices"
	"strconv"
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

// Cluster is a running Redis Cluster.
type Cluster struct {
	*servers.Cluster
	// Nodes are the servers as they were started: first the masters in the order of their
	// slots, then the replicas of the first master, of the second and so on. After a
	// failover use Masters and Replicas.
	Nodes []*Node
}

// StartCluster starts a cluster whose masters share the slots evenly, each with the given
// number of replicas, and ends it when the test is over. It returns when every node
// reports the cluster as healthy, which takes about two seconds. Further args are passed
// on to every server, for example "--cluster-node-timeout", "1000".
func StartCluster(tb testing.TB, masters, replicasPer int, args ...string) *Cluster {
	tb.Helper()
	cluster, err := servers.StartCluster(lasting(tb), tb.TempDir(), masters, replicasPer, args...)
	if err != nil {
		tb.Fatalf("start redis cluster: %v", err)
	}
	tb.Cleanup(func() {
		if err := cluster.Close(); err != nil {
			tb.Errorf("end redis cluster: %v", err)
		}
	})
	return wrapCluster(cluster)
}

func wrapCluster(cluster *servers.Cluster) *Cluster {
	c := &Cluster{Cluster: cluster}
	for _, node := range cluster.Nodes {
		c.Nodes = append(c.Nodes, &Node{node})
	}
	return c
}

// Join starts a master without slots that joins the cluster.
func (c *Cluster) Join(tb testing.TB) *Node {
	tb.Helper()
	node, err := c.Cluster.Join(lasting(tb), tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	c.Nodes = append(c.Nodes, &Node{node})
	return c.Nodes[len(c.Nodes)-1]
}

// Masters returns the nodes that are masters of slots now.
func (c *Cluster) Masters(tb testing.TB) []*Node {
	tb.Helper()
	return c.wrapped(tb)(c.Cluster.Masters(lasting(tb)))
}

// Replicas returns the nodes that are replicas now and are not marked as failed.
func (c *Cluster) Replicas(tb testing.TB) []*Node {
	tb.Helper()
	return c.wrapped(tb)(c.Cluster.Replicas(lasting(tb)))
}

// NodeForSlot returns the master of a slot.
func (c *Cluster) NodeForSlot(tb testing.TB, slot int) *Node {
	tb.Helper()
	owner, err := c.Cluster.NodeForSlot(lasting(tb), slot)
	return c.wrapped(tb)([]*servers.Node{owner}, err)[0]
}

// wrapped returns a function that turns servers into their nodes, and fails the test on
// an error.
func (c *Cluster) wrapped(tb testing.TB) func([]*servers.Node, error) []*Node {
	tb.Helper()
	return func(picked []*servers.Node, err error) []*Node {
		tb.Helper()
		if err != nil {
			tb.Fatal(err)
		}
		nodes := make([]*Node, len(picked))
		for i, server := range picked {
			nodes[i] = c.Nodes[slices.Index(c.Cluster.Nodes, server)]
		}
		return nodes
	}
}

// WaitHealthy waits until every node runs, all agree on the roles, all hash slots are
// served and every replica is linked. A test calls it after it has restarted or woken
// nodes.
func (c *Cluster) WaitHealthy(tb testing.TB) {
	tb.Helper()
	if err := c.Cluster.AwaitHealthy(lasting(tb)); err != nil {
		tb.Fatal(err)
	}
}

// KeySlot returns the hash slot of a key, as the cluster computes it.
func (c *Cluster) KeySlot(tb testing.TB, key string) int {
	tb.Helper()
	for _, node := range c.Nodes {
		if !node.Answers() {
			continue
		}
		slot, err := strconv.Atoi(node.mustAsk(tb, "CLUSTER", "KEYSLOT", key))
		if err != nil {
			tb.Fatalf("read slot of key %q: %v", key, err)
		}
		return slot
	}
	tb.Fatal("ask for key slot: no node of the cluster answers")
	return 0
}

// FlushAll deletes every key of the cluster.
func (c *Cluster) FlushAll(tb testing.TB) {
	tb.Helper()
	FlushAll(tb, c.Masters(tb)...)
}
