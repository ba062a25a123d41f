//go:build long

package integration

import (
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

// each applies a function to nodes.
func each(nodes []*redistest.Node, do func(*redistest.Node)) {
	for _, n := range nodes {
		do(n)
	}
}

// execute makes nodes execute a command.
func execute(t *testing.T, nodes []*redistest.Node, words ...string) {
	t.Helper()
	each(nodes, func(n *redistest.Node) { n.CLI(t, words...) })
}

// masters returns the nodes that were started as masters.
func (s *scene) masters() []*redistest.Node { return s.Nodes[:shards] }

// The faults of the nodes, the connections and the scripts of a cluster.

var overtaken = fault{
	name: "a replica promoted, the primary wakes", lasts: 4 * time.Second,
	make: func(_ *testing.T, s *scene) { s.Nodes[0].Stop() },
	heal: func(t *testing.T, s *scene) {
		s.Nodes[0].Cont()
		s.WaitHealthy(t)
	},
}

var empty = fault{
	name: "kill all nodes, back empty", lasts: 2 * time.Second,
	emptied: func(int, bool) bool { return true },
	make:    func(_ *testing.T, s *scene) { each(s.Nodes, (*redistest.Node).Kill) },
	heal: func(t *testing.T, s *scene) {
		each(s.Nodes, (*redistest.Node).Restart)
		s.WaitHealthy(t)
	},
}

var failover = fault{
	name: "CLUSTER FAILOVER", lasts: 2 * time.Second,
	make: func(t *testing.T, s *scene) { execute(t, s.Nodes[3:4], "CLUSTER", "FAILOVER") },
	heal: nothing,
}

var paused = fault{
	name: "CLIENT PAUSE of all masters", lasts: 500 * time.Millisecond,
	make: func(t *testing.T, s *scene) { execute(t, s.masters(), "CLIENT", "PAUSE", "500", "ALL") },
	heal: nothing,
}

var flushed = fault{
	name: "SCRIPT FLUSH ten times", lasts: 100 * time.Millisecond,
	make: func(t *testing.T, s *scene) {
		for range 10 {
			execute(t, s.masters(), "SCRIPT", "FLUSH")
		}
	},
	heal: nothing,
}

var full = fault{
	name: "maxmemory reached, noeviction", lasts: time.Second,
	make: func(t *testing.T, s *scene) { execute(t, s.masters(), "CONFIG", "SET", "maxmemory", "1") },
	heal: func(t *testing.T, s *scene) { execute(t, s.masters(), "CONFIG", "SET", "maxmemory", "0") },
}

var slow = fault{
	name: "every command takes 20 ms", lasts: time.Second,
	make: func(t *testing.T, s *scene) {
		for range 25 {
			for _, n := range s.masters() {
				go n.CLI(t, "EVAL", "local t=redis.call('TIME') local e=t[1]*1e6+t[2]+20000 repeat t=redis.call('TIME') until t[1]*1e6+t[2]>e", "0")
			}
			pause(30 * time.Millisecond)
		}
	},
	heal: nothing,
}

// covered returns a fault with cluster-require-full-coverage: no hash slot is served
// while one is not covered.
func covered(f fault) fault {
	f.name, f.coverage = f.name+", full coverage", true
	return f
}

// TestLongFaults is the whole fault suite.
func TestLongFaults(t *testing.T) {
	allDark := covered(darkShard)
	allDark.timeout = 0 // no exact counts in it
	runFaults(t,
		hang, covered(hang), die, covered(die), overtaken, reset, empty, failover, migration(5), paused, flushed, full, slow,
		late, torn, swallowed, asleep, darkShard, allDark, clockStep,
	)
}
