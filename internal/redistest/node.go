package redistest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"syscall"
	"testing"
)

// portAttempts bounds the retries when a stranger takes a port between its
// choice and the server's start.
const portAttempts = 5

// Node is a running redis-server. Its methods may be called from any goroutine.
// Kill, Stop, Cont and Restart panic if the operating system refuses them,
// which no test can make up for.
type Node struct {
	Addr string // host and port
	Port int

	folder   string
	args     []string
	password string
	claim    *port

	mutex   sync.Mutex
	process *process
	runs    int
	stopped bool
}

// Start starts a single server that keeps nothing on disk, and ends it when the
// test is over. Further args are passed on as they would be on the command
// line, for example "--maxmemory", "1mb".
func Start(tb testing.TB, args ...string) *Node {
	tb.Helper()
	node, err := startNode(tb.TempDir(), singlePorts, args)
	if err != nil {
		tb.Fatalf("start redis: %v", err)
	}
	tb.Cleanup(func() {
		if err := node.close(); err != nil {
			tb.Errorf("end redis: %v", err)
		}
	})
	return node
}

// startNode starts a server in folder, on a port of the range.
func startNode(folder string, from portRange, args []string) (*Node, error) {
	for range portAttempts {
		claim, err := reservePort(from)
		if err != nil {
			return nil, err
		}
		node := &Node{
			Addr:     loopbackAddr(claim.number),
			Port:     claim.number,
			folder:   folder,
			args:     append(baseArgs(folder, claim.number), args...),
			password: argument(args, "--requirepass"),
			claim:    claim,
		}
		err = node.run()
		if err == nil {
			return node, nil
		}
		claim.release()
		if !errors.Is(err, errPortTaken) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("start redis-server %d times: %w", portAttempts, errPortTaken)
}

// baseArgs are the settings of every server: on the loopback interface only,
// nothing on disk, and no waiting for more replicas before the first one is
// served. A later argument wins over an earlier one.
func baseArgs(folder string, number int) []string {
	return []string{
		"--port", strconv.Itoa(number),
		"--bind", "127.0.0.1",
		"--dir", folder,
		"--save", "",
		"--appendonly", "no",
		"--repl-diskless-sync-delay", "0",
	}
}

// argument returns the value that follows the last appearance of name.
func argument(args []string, name string) string {
	value := ""
	for i := 1; i < len(args); i++ {
		if args[i-1] == name {
			value = args[i]
		}
	}
	return value
}

// run starts the process anew.
func (n *Node) run() error {
	n.runs++
	process, err := startProcess(n.folder, n.runs, n.args)
	if err != nil {
		return err
	}
	n.process, n.stopped = process, false
	return nil
}

// Kill ends the server as a crash would, with SIGKILL, and returns when it is
// gone. Killing a dead server does nothing.
func (n *Node) Kill() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.must("kill", n.process.kill())
}

// Stop freezes the server with SIGSTOP: connections stay open and new ones are
// accepted by the kernel, but nothing is answered until Cont.
func (n *Node) Stop() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.must("stop", n.process.signal(syscall.SIGSTOP))
	n.stopped = true
}

// Cont wakes a stopped server with SIGCONT.
func (n *Node) Cont() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.must("continue", n.process.signal(syscall.SIGCONT))
	n.stopped = false
}

// Restart starts the server again on the same port, with the same arguments and
// in the same folder, and kills it first if it still runs. It returns when the
// server accepts connections; a cluster node then still has to find its place,
// see [Cluster.WaitHealthy].
func (n *Node) Restart() {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.must("kill", n.process.kill())
	n.must("restart", n.run())
}

// answers reports whether the server runs and is not stopped.
func (n *Node) answers() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return !n.stopped && !n.process.hasEnded()
}

// close ends the server for good and frees its port.
func (n *Node) close() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	err := n.process.kill()
	n.claim.release()
	return err
}

func (n *Node) must(verb string, err error) {
	if err != nil {
		panic(fmt.Sprintf("redistest: %s server on %s: %v", verb, n.Addr, err))
	}
}
