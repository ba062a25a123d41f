//go:build long

package integration

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/faultnet"
)

// links applies a function to the links of all masters.
func links(do func(l *faultnet.Link)) func(*testing.T, *scene) {
	return func(_ *testing.T, s *scene) {
		for _, l := range s.links[:shards] {
			do(l)
		}
	}
}

// late is a network that becomes slow.
var late = fault{
	name: "100 ms more for every reply of all masters", lasts: 2 * time.Second, linked: true,
	make: links(func(l *faultnet.Link) { l.Delay(100 * time.Millisecond) }),
	heal: links(func(l *faultnet.Link) { l.Delay(0) }),
}

// torn is a network that resets connections.
var torn = fault{
	name: "5 % of the segments answered with a reset", lasts: 2 * time.Second, linked: true,
	make: links(func(l *faultnet.Link) { l.Reset(0.05) }),
	heal: links(func(l *faultnet.Link) { l.Reset(0) }),
}

// swallowed is a master whose network drops all packets in both directions.
var swallowed = fault{
	name: "a primary in a black hole", lasts: 2 * time.Second, linked: true,
	make: func(_ *testing.T, s *scene) { s.links[0].Block() },
	heal: func(_ *testing.T, s *scene) { s.links[0].Unblock() },
}

// asleep is a master that is blocked by another command.
var asleep = fault{
	name: "DEBUG SLEEP of a primary, 500 ms", args: []string{"--enable-debug-command", "yes"},
	make: func(t *testing.T, s *scene) {
		if got := s.Nodes[0].CLI(t, "DEBUG", "SLEEP", "0.5"); got != "OK" {
			t.Errorf("DEBUG SLEEP = %q", got)
		}
	},
	heal: nothing,
}
