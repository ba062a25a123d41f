package cluster

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// TestUnownedSlots: a hash slot without a master is an error of the store and a line of the log, until a
// master has it again.
func TestUnownedSlots(t *testing.T) {
	node := redistest.StartCluster(t, 1, 0, "--cluster-require-full-coverage", "no").Nodes[0]
	var out syncbuffer.Buffer
	s := openWithOptions(t, Options{ReloadInterval: 50 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&out, nil))}, node.Addr)
	if err := s.Ping(t.Context()); err != nil || s.Unowned() != nil {
		t.Fatalf("of a whole cluster: %v, %v", err, s.Unowned())
	}
	node.CLI(t, "CLUSTER", "DELSLOTS", "7")
	redistest.Eventually(t, 20*time.Second, "a slot without a master", func() bool { return s.Unowned() != nil })
	if err := s.Ping(t.Context()); !errors.Is(err, errUnowned) || !strings.HasPrefix(err.Error(), "1 of 16384 hash slots have no master: ") {
		t.Errorf("ping: %v", err)
	}
	node.CLI(t, "CLUSTER", "ADDSLOTS", "7")
	redistest.Eventually(t, 20*time.Second, "a whole cluster", func() bool { return s.Unowned() == nil })
	redistest.Eventually(t, 20*time.Second, "both lines", func() bool {
		_, behind, lost := strings.Cut(out.String(), `msg="hash slots of the store have no master, using backstop for their tenants" slots=1 of=16384`)
		return lost && strings.Contains(behind, "all hash slots of the store have a master again")
	})
}
