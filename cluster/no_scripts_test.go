package cluster

import (
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
)

// TestNoScripts: a store does not open on a node without EVALSHA, or without SCRIPT. Such a node that comes later is reported as
// one that forbids what the proxy needs, and opens its breaker.
func TestNoScripts(t *testing.T) {
	for _, command := range []string{"EVALSHA", "SCRIPT"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			node := redistest.Start(t, "--rename-command", command, "")
			const lacks = "it knows no SCRIPT LOAD or no EVALSHA"
			options := Options{Cooldown: time.Minute, DecisionTimeout: time.Second, IOTimeout: 5 * time.Second, DialTimeout: 5 * time.Second}
			if _, err := openWithout(t, options, node.Addr); err == nil || !strings.Contains(err.Error(), lacks) {
				t.Fatalf("opened with %v", err)
			}
			node.Kill()
			s, err := openWithout(t, options, node.Addr)
			if err != nil {
				t.Fatal(err)
			}
			running(t, s)
			node.Restart()
			<-s.Reached()
			untilState(t, s, compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"}), "t", breaker.Open)
			if err := s.Shards()[0].Err; !Forbidden(err) || !strings.Contains(Describe(err), lacks) {
				t.Errorf("the error: %v", err)
			}
		})
	}
}
