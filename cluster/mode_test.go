package cluster

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestMode checks the mode of a store: it falls back if undeclared keys are refused.
func TestMode(t *testing.T) {
	refusing := redistest.StartCluster(t, 1, 0).Nodes[0]
	// The connection's probe of undeclared keys is refused because of its keys.
	redistest.Restrict(t, refusing, append([]string{"~lg:probe:{*.*}*", "~lg:t:*"}, strings.Fields(Rights)[1:]...)...)
	for want, addr := range map[Mode]string{
		ModeSingle:    redistest.SharedNode(t).Addr,
		ModeShardWide: redistest.SharedCluster(t).Addrs()[0],
		ModePerSlot:   refusing.Addr,
	} {
		for node, n := range open(t, addr).top.Load().nodes {
			n.pipeline.mu.Lock()
			if m := n.pipeline.conn.opts.mode(); m != want {
				t.Errorf("mode %s on %s, want %s", m, node, want)
			}
			n.pipeline.mu.Unlock()
		}
	}
}
