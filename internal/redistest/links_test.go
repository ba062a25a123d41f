package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
)

func TestClientsOfAClusterBehindLinksComeThroughThem(t *testing.T) {
	t.Parallel()
	cluster := StartCluster(t, 3, 1)
	links := cluster.Behind(t)
	if got := cluster.Masters(t); !slices.Equal(got, cluster.Nodes[:3]) {
		t.Errorf("masters = %v, want the first three nodes", addrsOf(got))
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{links[0].Addr()}})
	defer client.Close()
	known := map[string]bool{}
	shards, err := client.ClusterShards(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range shards {
		for _, node := range s.Nodes {
			known[net.JoinHostPort(node.IP, strconv.FormatInt(node.Port, 10))] = true
		}
	}
	for i, link := range links {
		if !known[link.Addr()] || known[cluster.Nodes[i].Addr] {
			t.Errorf("clients are sent to %v, want the link %s and not %s", known, link.Addr(), cluster.Nodes[i].Addr)
		}
	}
	for i := range 100 {
		key := fmt.Sprint("k", i)
		if err := client.Set(t.Context(), key, i, 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
}
