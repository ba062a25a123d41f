package cluster

import (
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
)

func TestConformanceSingle(t *testing.T) {
	node := redistest.SharedNode(t)
	storetest.Run(t, open(t, node.Addr))
	redistest.AssertAllKeysExpire(t, node)
}

func TestConformanceCluster(t *testing.T) {
	c := redistest.SharedCluster(t)
	storetest.Run(t, open(t, c.Addrs()...))
	redistest.AssertAllKeysExpire(t, c.Masters(t)...)
}
