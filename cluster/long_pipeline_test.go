//go:build long

package cluster

import (
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
)

// These run for minutes what the tests of the same names run for a moment.

func TestLongSerialOrder(t *testing.T) {
	seed := storetest.Seed(t)
	eachStore(t, func(t *testing.T, s *Store) { storetest.SerialOrder(t, s, seed, 2000) })
}

func TestLongManySlots(t *testing.T) {
	seed := storetest.Seed(t)
	eachStore(t, func(t *testing.T, s *Store) { manySlots(t, s, seed, 300) })
}

func TestLongCrowd(t *testing.T) {
	eachStore(t, func(t *testing.T, s *Store) {
		for range 50 {
			storetest.Crowd(t, s)
		}
	})
}

func TestLongScriptFlush(t *testing.T) {
	eachWay(t, ways, func(t *testing.T, c *redistest.Cluster, opts Options) { scriptFlushes(t, c, opts, 1000) })
}

func TestLongConnectionsKilled(t *testing.T) {
	eachWay(t, ways, func(t *testing.T, c *redistest.Cluster, opts Options) { connectionsKilled(t, c, opts, 1000) })
}

func TestLongSomeScriptsMissing(t *testing.T) {
	seed := storetest.Seed(t)
	eachWay(t, ways, func(t *testing.T, c *redistest.Cluster, opts Options) { someScriptsMissing(t, c, opts, seed, 500) })
}

func TestLongSlotMoves(t *testing.T) { slotMovesEachWay(t, ways, 15) }

func TestLongPausedMaster(t *testing.T) { pausedMaster(t, ways, 40) }
