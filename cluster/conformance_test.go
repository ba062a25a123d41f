package cluster

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
)

func TestConformanceSingle(t *testing.T) {
	node := redistest.SharedNode(t)
	storetest.Run(t, open(t, node.Addr))
	redistest.AssertAllKeysExpire(t, node)
}

// TestConformanceCluster checks that the ways to batch calls give the same answers.
func TestConformanceCluster(t *testing.T) {
	conform(t, Options{}, Options{SeparateChecks: true, DeclaredKeys: true})
}

// conform runs the contract of every store on a cluster with each of the options.
func conform(t *testing.T, all ...Options) {
	t.Helper()
	c := redistest.SharedCluster(t)
	for _, opts := range all {
		name := fmt.Sprintf("separate=%v,declared=%v", opts.SeparateChecks, opts.DeclaredKeys)
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, openWithOptions(t, opts, c.Addrs()...))
			redistest.AssertAllKeysExpire(t, c.Masters(t)...)
			c.FlushAll(t)
		})
	}
}
