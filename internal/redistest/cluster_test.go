package redistest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

func TestClusterIsWhole(t *testing.T) {
	cluster := SharedCluster(t)
	if got := cluster.Masters(t); !slices.Equal(got, cluster.Nodes[:3]) {
		t.Errorf("masters = %v, want the first three nodes", addrsOf(got))
	}
	if got := cluster.Replicas(t); !slices.Equal(got, cluster.Nodes[3:]) {
		t.Errorf("replicas = %v, want the last three nodes", addrsOf(got))
	}
	if got := cluster.Addrs(); !slices.Equal(got, addrsOf(cluster.Nodes)) {
		t.Errorf("Addrs = %v", got)
	}
	for _, node := range cluster.Nodes {
		if got := node.CLI(t, "CLUSTER", "INFO"); !strings.Contains(got, "cluster_state:ok") {
			t.Errorf("%s: %s", node.Addr, got)
		}
	}
}

func TestEverySlotHasItsMaster(t *testing.T) {
	cluster := SharedCluster(t)
	for slot, want := range map[int]int{0: 0, 5460: 0, 5461: 1, 10921: 1, 10922: 2, 16383: 2} {
		if got := cluster.NodeForSlot(t, slot); got != cluster.Nodes[want] {
			t.Errorf("NodeForSlot(%d) = %s, want %s", slot, got.Addr, cluster.Nodes[want].Addr)
		}
	}
}

func TestKeySlotLeadsToTheNodeThatTakesTheKey(t *testing.T) {
	cluster := SharedCluster(t)
	if got := cluster.KeySlot(t, "123456789"); got != 0x31c3 {
		t.Errorf(`KeySlot("123456789") = %d, want %d`, got, 0x31c3)
	}
	for _, key := range []string{"{redistest}a", "redistest:b", "redistest:c"} {
		node := cluster.NodeForSlot(t, cluster.KeySlot(t, key))
		if got := node.CLI(t, "SET", key, "1", "PX", "60000"); got != "OK" {
			t.Errorf("SET %s on its node = %q", key, got)
		}
	}
	cluster.FlushAll(t)
	for _, node := range cluster.Masters(t) {
		if got := node.CLI(t, "DBSIZE"); got != "0" {
			t.Errorf("DBSIZE after FlushAll = %q", got)
		}
	}
}

func TestSharedServersAreTheSameForAll(t *testing.T) {
	cluster, node := SharedCluster(t), SharedNode(t)
	if again := SharedCluster(t); again != cluster {
		t.Error("a second call started another cluster")
	}
	if again := SharedNode(t); again != node {
		t.Error("a second call started another server")
	}
}

func TestClusterSurvivesAKilledMaster(t *testing.T) {
	t.Parallel()
	cluster := StartCluster(t, 3, 1)
	first := cluster.Nodes[0]
	first.Kill()
	promoted := cluster.Nodes[3]
	err := servers.Await("the promotion", func() error {
		if got := cluster.NodeForSlot(t, 0); got != promoted {
			return fmt.Errorf("slot 0 still belongs to %s", got.Addr)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := cluster.Replicas(t); slices.Contains(got, first) {
		t.Error("a dead node counts as a replica")
	}
	first.Restart()
	cluster.WaitHealthy(t)
	if got := cluster.Replicas(t); !slices.Contains(got, first) {
		t.Errorf("replicas = %v, want the old master %s among them", addrsOf(got), first.Addr)
	}
}

func TestClusterOfOneMaster(t *testing.T) {
	t.Parallel()
	cluster := StartCluster(t, 1, 0)
	if got := cluster.NodeForSlot(t, 16383); got != cluster.Nodes[0] {
		t.Errorf("NodeForSlot = %s", got.Addr)
	}
}

func addrsOf(nodes []*Node) []string {
	addrs := make([]string, len(nodes))
	for i, node := range nodes {
		addrs[i] = node.Addr
	}
	return addrs
}
