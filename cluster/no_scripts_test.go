package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
)

// TestNoScripts: a node without EVALSHA, or without SCRIPT, is reported as one that forbids what the proxy needs, and opens
// its breaker.
func TestNoScripts(t *testing.T) {
	for _, command := range []string{"EVALSHA", "SCRIPT"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			node := redistest.Start(t, "--rename-command", command, "")
			s := openWithOptions(t, Options{Cooldown: time.Minute, DecisionTimeout: time.Second}, node.Addr)
			untilState(t, s, compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"}), "t", breaker.Open)
			if err := s.Shards()[0].Err; !Forbidden(err) || !strings.Contains(Describe(err), "it knows no SCRIPT LOAD or no EVALSHA") {
				t.Errorf("the error: %v", err)
			}
		})
	}
}
