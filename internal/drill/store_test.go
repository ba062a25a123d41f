package drill

import (
	"reflect"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestShardsOf checks that ranges of one master are one shard, and that a node without a host has
// that of the node that was asked.
func TestShardsOf(t *testing.T) {
	nodes := func(addrs ...string) (all []redis.ClusterNode) {
		for _, a := range addrs {
			all = append(all, redis.ClusterNode{ID: "id" + a, Addr: a})
		}
		return all
	}
	got := shardsOf([]redis.ClusterSlot{
		{Start: 0, End: 10, Nodes: nodes("10.0.0.1:7000", "10.0.0.2:7001")},
		{Start: 11, End: 20, Nodes: nodes(":7002")},
		{Start: 21, End: 30, Nodes: nodes("10.0.0.1:7000", "10.0.0.2:7001")},
		{Start: 31, End: 40},
	}, "10.0.0.9:7002")
	want := []shard{
		{"10.0.0.1:7000", "id10.0.0.1:7000", []string{"10.0.0.2:7001"}, [][2]int{{0, 10}, {21, 30}}},
		{"10.0.0.9:7002", "id:7002", nil, [][2]int{{11, 20}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
