package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

// slotCount is the number of hash slots of a Redis Cluster.
const slotCount = 16384

// Cluster is a running Redis Cluster.
type Cluster struct {
	// Nodes are the servers as they were started: first the masters in the order
	// of their slots, then the replicas of the first master, of the second and so
	// on. After a failover ask Masters and Replicas.
	Nodes []*Node

	masters, replicasPer int
}

// StartCluster starts a cluster whose masters share the slots evenly, each with
// the given number of replicas, and ends it when the test is over. It returns
// when every node calls the cluster healthy, which takes about two seconds.
// Further args are passed on to every server, for example
// "--cluster-node-timeout", "1000".
func StartCluster(tb testing.TB, masters, replicasPer int, args ...string) *Cluster {
	tb.Helper()
	cluster, err := startCluster(lasting(tb), tb.TempDir(), masters, replicasPer, args)
	if err != nil {
		tb.Fatalf("start redis cluster: %v", err)
	}
	tb.Cleanup(func() {
		if err := cluster.close(); err != nil {
			tb.Errorf("end redis cluster: %v", err)
		}
	})
	return cluster
}

// startCluster starts a cluster with a folder for each node below folder.
func startCluster(ctx context.Context, folder string, masters, replicasPer int, args []string) (*Cluster, error) {
	cluster := &Cluster{masters: masters, replicasPer: replicasPer}
	if err := cluster.start(ctx, folder, args); err != nil {
		return nil, errors.Join(err, cluster.close())
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
	return c.awaitHealthy(ctx)
}

// clusterArgs are the settings of every cluster node. The node timeout is short
// enough to test a failover, and long enough not to see one by accident on a
// loaded machine.
func clusterArgs() []string {
	return []string{
		"--cluster-enabled", "yes",
		"--cluster-config-file", "nodes.conf",
		"--cluster-node-timeout", "2000",
		"--cluster-announce-ip", "127.0.0.1",
	}
}

// close ends every node.
func (c *Cluster) close() error {
	var problems []error
	for _, node := range c.Nodes {
		problems = append(problems, node.close())
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

// KeySlot asks the cluster which slot a key belongs to.
func (c *Cluster) KeySlot(tb testing.TB, key string) int {
	tb.Helper()
	for _, node := range c.Nodes {
		if !node.answers() {
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
