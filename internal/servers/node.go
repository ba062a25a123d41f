package servers

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"syscall"
)

// portAttempts bounds the retries when another process takes a port between its choice
// and the server's start.
const portAttempts = 5

// Node is a running redis-server. Its methods may be called from any goroutine.
type Node struct {
	Addr string // host and port
	Port int
	// Password is the one that the server was started with, or empty.
	Password string

	folder string
	args   []string
	claim  *port

	mutex   sync.Mutex
	process *process
	runs    int
	stopped bool
}

// StartNode starts a single server that keeps nothing on disk, with its log in
// folder. Further args are passed on as they would be on the command line, for
// example "--maxmemory", "1mb". It returns when the server accepts connections.
func StartNode(folder string, args ...string) (*Node, error) {
	return startNode(folder, singlePorts, args)
}

// startNode starts a server in folder, on a port of the range.
func startNode(folder string, from portRange, args []string) (*Node, error) {
	return startOn(folder, from, args, func(number int) []string { return baseArgs(folder, number) })
}

// StartSentinel starts a Sentinel with a configuration file, which it writes to, and further
// args as StartNode.
func StartSentinel(folder, config string, args ...string) (*Node, error) {
	return startOn(folder, singlePorts, args, func(number int) []string {
		return []string{config, "--sentinel", "--port", strconv.Itoa(number), "--bind", "127.0.0.1", "--dir", folder}
	})
}

// startOn starts a server with base settings for the port that it gets.
func startOn(folder string, from portRange, args []string, base func(number int) []string) (*Node, error) {
	for range portAttempts {
		claim, err := reservePort(from)
		if err != nil {
			return nil, err
		}
		node := &Node{
			Addr:     loopbackAddr(claim.number),
			Port:     claim.number,
			Password: argument(args, "--requirepass"),
			folder:   folder,
			args:     slices.Concat(base(claim.number), tlsArgs(claim.number, args), args),
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

// baseArgs are the settings of every server: on the loopback interface only, nothing on
// disk, and no wait for more replicas before the first one is served. A later argument
// wins over an earlier one.
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

// tlsPortOffset is the distance between the port of a server and its TLS port below it. The
// TLS ports have no ranges and no claims of their own: only servers with a claim use them.
const tlsPortOffset = 10000

// TLSAddr is the host and port of a server that was started with a certificate.
func (n *Node) TLSAddr() string { return loopbackAddr(n.Port - tlsPortOffset) }

// tlsArgs are further settings of a server with a certificate. The bus port of a cluster node
// would follow from its TLS port.
func tlsArgs(number int, args []string) []string {
	switch {
	case argument(args, "--tls-cert-file") == "":
		return nil
	case argument(args, "--cluster-enabled") == "":
		return []string{"--tls-port", strconv.Itoa(number - tlsPortOffset)}
	default:
		return []string{"--tls-port", strconv.Itoa(number - tlsPortOffset), "--cluster-port", strconv.Itoa(number + busPortOffset)}
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
	what, err := redisServer()
	if err != nil {
		return err
	}
	if slices.Contains(n.args, "--sentinel") {
		what.ready = "+monitor master"
	}
	n.runs++
	process, err := startProcess(what, n.folder, n.runs, n.args)
	if err != nil {
		return err
	}
	n.process, n.stopped = process, false
	return nil
}

func redisServer() (program, error) {
	path, err := Binary("redis-server")
	return program{name: "redis-server", path: path, ready: "Ready to accept connections"}, err
}

// PID is the id of the server's process.
func (n *Node) PID() int {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.process.pid
}

// Kill ends the server as a crash would, with SIGKILL, and returns when it is
// gone. Killing a dead server does nothing.
func (n *Node) Kill() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.process.kill()
}

// Stop freezes the server with SIGSTOP: connections stay open and new ones are accepted
// by the kernel, but no command gets a reply until Cont.
func (n *Node) Stop() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.stopped = true
	return n.process.signal(syscall.SIGSTOP)
}

// Cont wakes a stopped server with SIGCONT.
func (n *Node) Cont() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.stopped = false
	return n.process.signal(syscall.SIGCONT)
}

// Restart starts the server again on the same port, with the same arguments and in the
// same folder, and kills it first if it still runs. It returns when the server accepts
// connections; a cluster node still has to rejoin its cluster then, see
// [Cluster.AwaitHealthy].
func (n *Node) Restart() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if err := n.process.kill(); err != nil {
		return err
	}
	return n.run()
}

// Answers reports whether the server runs and is not stopped.
func (n *Node) Answers() bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return !n.stopped && !n.process.hasEnded()
}

// Close ends the server for good and frees its port.
func (n *Node) Close() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	err := n.process.kill()
	n.claim.release()
	return err
}
