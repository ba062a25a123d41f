package redistest

import (
	"context"
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/internal/servers"
)

// Node is a running redis-server. Its methods may be called from any goroutine. Kill,
// Stop, Cont and Restart panic if the operating system refuses them, because no test can
// handle that.
type Node struct{ *servers.Node }

// Start starts a single server that keeps nothing on disk, and ends it when the
// test is over. Further args are passed on as they would be on the command
// line, for example "--maxmemory", "1mb".
func Start(tb testing.TB, args ...string) *Node {
	tb.Helper()
	node, err := servers.StartNode(tb.TempDir(), args...)
	if err != nil {
		tb.Fatalf("start redis: %v", err)
	}
	tb.Cleanup(func() {
		if err := node.Close(); err != nil {
			tb.Errorf("end redis: %v", err)
		}
	})
	return &Node{node}
}

// Kill ends the server as a crash would, with SIGKILL, and returns when it is
// gone. Killing a dead server does nothing.
func (n *Node) Kill() { n.must("kill", n.Node.Kill()) }

// Stop freezes the server with SIGSTOP: connections stay open and new ones are accepted
// by the kernel, but no command gets a reply until Cont.
func (n *Node) Stop() { n.must("stop", n.Node.Stop()) }

// Cont wakes a stopped server with SIGCONT.
func (n *Node) Cont() { n.must("continue", n.Node.Cont()) }

// Restart starts the server again on the same port, with the same arguments and in the
// same folder, and kills it first if it still runs. It returns when the server accepts
// connections; a cluster node still has to rejoin its cluster then, see
// [Cluster.WaitHealthy].
func (n *Node) Restart() { n.must("restart", n.Node.Restart()) }

func (n *Node) must(verb string, err error) {
	if err != nil {
		panic(fmt.Sprintf("redistest: %s server on %s: %v", verb, n.Addr, err))
	}
}

// mustAsk sends a command to a server that answers, and returns its reply as text.
func (n *Node) mustAsk(tb testing.TB, words ...any) string {
	tb.Helper()
	reply, err := n.Ask(lasting(tb), words...)
	if err != nil {
		tb.Fatal(err)
	}
	return reply
}

// lasting returns the test's context without its cancellation, which comes before the
// test's cleanups: they too may send commands. Each command has a time limit of its own.
func lasting(tb testing.TB) context.Context {
	return context.WithoutCancel(tb.Context())
}
