package cluster

import (
	"strconv"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestRoleAfterChange checks that after a change of the topology the role of nodes that
// keep their connections is checked. A master that has become a replica loses its
// connection, and gets a new one only after it is a master again.
func TestRoleAfterChange(t *testing.T) {
	master, other := redistest.Start(t), redistest.Start(t)
	s := open(t, master.Addr)
	top := s.top.Load()
	kept := top.nodes[master.Addr]
	linked := func() bool {
		kept.pipeline.mu.Lock()
		defer kept.pipeline.mu.Unlock()
		return kept.pipeline.conn != nil
	}
	if s.assertMasters(t.Context(), top, top); !linked() || s.Stats().RoleErrors != 0 {
		t.Fatal("a master has lost its connection")
	}
	master.CLI(t, "REPLICAOF", "127.0.0.1", strconv.Itoa(other.Port))
	s.assertMasters(t.Context(), top, top)
	redistest.Eventually(t, 5*time.Second, "the connection to end", func() bool { return !linked() })
	refused := s.Stats().RoleErrors
	redistest.Eventually(t, 5*time.Second, "connections to be refused", func() bool { return s.Stats().RoleErrors > refused+1 })
	if linked() {
		t.Error("there is a connection to a replica")
	}
	master.CLI(t, "REPLICAOF", "NO", "ONE")
	redistest.Eventually(t, 5*time.Second, "a connection", linked)
}
