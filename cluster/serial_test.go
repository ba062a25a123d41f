package cluster

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
)

// eachStore runs a test on a single Redis and on a cluster of three masters, in
// each way to put calls together.
func eachStore(t *testing.T, test func(t *testing.T, s *Store)) {
	t.Helper()
	node, c := redistest.SharedNode(t), redistest.SharedCluster(t)
	for name, addrs := range map[string][]string{"single": {node.Addr}, "cluster": c.Addrs()} {
		for _, opts := range ways {
			t.Run(fmt.Sprintf("%s,separate=%v,declared=%v", name, opts.SeparateChecks, opts.DeclaredKeys), func(t *testing.T) {
				test(t, openWithOptions(t, opts, addrs...))
			})
		}
	}
	redistest.AssertAllKeysExpire(t, append(c.Masters(t), node)...)
}

// ways are the ways to put calls together.
var ways = []Options{{}, {SeparateChecks: true}, {DeclaredKeys: true}, {SeparateChecks: true, DeclaredKeys: true}}

func TestSerialOrder(t *testing.T) {
	seed := storetest.Seed(t)
	eachStore(t, func(t *testing.T, s *Store) { storetest.SerialOrder(t, s, seed, 30) })
}

func TestManySlots(t *testing.T) {
	seed := storetest.Seed(t)
	eachStore(t, func(t *testing.T, s *Store) {
		storetest.ManySlots(t, s, seed, 20)
		if n := s.Stats().RefundsLost; n != 0 {
			t.Errorf("%d refunds lost", n)
		}
	})
}

func TestCrowd(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) { storetest.Crowd(t, s, t.Name()) })
}
