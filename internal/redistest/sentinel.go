package redistest

import (
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

// StartSentinel starts a Sentinel with a configuration file, and ends it when the test is over.
// Further args are passed on as by [Start].
func StartSentinel(tb testing.TB, config string, args ...string) *Node {
	tb.Helper()
	node, err := servers.StartSentinel(tb.TempDir(), config, args...)
	if err != nil {
		tb.Fatalf("start sentinel: %v", err)
	}
	tb.Cleanup(func() {
		if err := node.Close(); err != nil {
			tb.Errorf("end sentinel: %v", err)
		}
	})
	return &Node{node}
}
