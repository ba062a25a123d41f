package cluster

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
)

// ways holds the ways to batch calls, and corners those of them that have nothing in
// common.
var (
	ways    = []Options{{}, {SeparateChecks: true}, {DeclaredKeys: true}, {SeparateChecks: true, DeclaredKeys: true}}
	corners = []Options{ways[0], ways[3]}
)

// eachWay runs a test on a shared cluster of three masters, for each of some ways to batch
// calls.
func eachWay(t *testing.T, ways []Options, test func(t *testing.T, c *redistest.Cluster, opts Options)) {
	t.Helper()
	c := redistest.SharedCluster(t)
	for _, opts := range ways {
		t.Run(wayName(opts), func(t *testing.T) { test(t, c, opts) })
	}
	redistest.AssertAllKeysExpire(t, c.Masters(t)...)
}

func wayName(opts Options) string {
	return fmt.Sprintf("separate=%v,declared=%v", opts.SeparateChecks, opts.DeclaredKeys)
}

// eachStore runs a test on a single Redis and on a cluster of three masters, for each way
// to batch calls.
func eachStore(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	node := redistest.SharedNode(t)
	for _, opts := range ways {
		t.Run("single,"+wayName(opts), func(t *testing.T) { test(t, openWithOptions(t, opts, node.Addr)) })
	}
	redistest.AssertAllKeysExpire(t, node)
	eachWay(t, ways, func(t *testing.T, c *redistest.Cluster, opts Options) {
		test(t, openWithOptions(t, opts, c.Addrs()...))
	})
}

func TestSerialOrder(t *testing.T) {
	seed := storetest.Seed(t)
	eachStore(t, func(t *testing.T, s *Store) { storetest.SerialOrder(t, s, seed, 10) })
}

func TestManySlots(t *testing.T) {
	seed := storetest.Seed(t)
	eachStore(t, func(t *testing.T, s *Store) { manySlots(t, s, seed, 3) })
}

func manySlots(t *testing.T, s *Store, seed uint64, histories int) {
	t.Helper()
	storetest.ManySlots(t, s, seed, histories)
	if n := s.Stats().RefundsLost; n != 0 {
		t.Errorf("%d refunds lost", n)
	}
}

func TestCrowd(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) { storetest.Crowd(t, s) })
}
