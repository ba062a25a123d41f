package commands_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/commands"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }

// answer is a reply of either side.
type answer struct {
	kind  byte     // the first byte
	text  string   // the rest of the line, or the string
	null  bool     // of a string or an array
	parts []answer // of an aggregate; of a map keys and values in turn
}

func (a answer) String() string {
	if a.null {
		return string(a.kind) + "null"
	}
	return fmt.Sprintf("%c%.200q%v", a.kind, a.text, len(a.parts))
}

// readAnswer reads one reply in RESP2 or RESP3.
func readAnswer(r *bufio.Reader) (a answer, err error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return a, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return a, errors.New("an empty line")
	}
	a = answer{kind: line[0], text: line[1:]}
	if !strings.ContainsRune("$=!*%~>", rune(a.kind)) {
		return a, nil
	}
	n, err := strconv.Atoi(a.text)
	if err != nil {
		return a, err
	}
	switch {
	case n < 0:
		a.null = true
	case strings.ContainsRune("$=!", rune(a.kind)):
		text := make([]byte, n+2)
		_, err = io.ReadFull(r, text)
		a.text = string(text[:n])
	default:
		if a.kind == '%' {
			n *= 2
		}
		a.text = ""
		for range n {
			part, err := readAnswer(r)
			if err != nil {
				return a, err
			}
			a.parts = append(a.parts, part)
		}
	}
	return a, err
}

// reference is the real servers and a Limitgate handler.
type reference struct {
	tb            testing.TB
	alone, owning *redistest.Node // the second is a cluster of one
	handler       *commands.Handler
	theirs, ours  map[string]bool // the full names of commands
	conns         map[*redistest.Node]net.Conn
}

// newReference starts the servers for the comparison: a single server, and a cluster of
// one for the commands that only a cluster serves.
func newReference(tb testing.TB) *reference {
	tb.Helper()
	r := &reference{
		tb:      tb,
		alone:   redistest.Start(tb, "--databases", "1"),
		owning:  redistest.StartCluster(tb, 1, 0).Nodes[0],
		handler: commands.NewHandler(commands.Options{Limiter: onMemory(tb)}),
		conns:   map[*redistest.Node]net.Conn{},
	}
	tb.Cleanup(r.hangUp)
	list := words("COMMAND LIST")
	names := func(a answer) map[string]bool {
		all := map[string]bool{}
		for _, p := range a.parts {
			all[p.text] = true
		}
		return all
	}
	r.theirs = names(r.ask(tb, r.alone, 2, list)[0])
	r.ours = names(r.serve(tb, 2, list)[0])
	if len(r.theirs) < 200 || len(r.ours) < 60 {
		tb.Fatalf("%d commands of theirs, %d of ours", len(r.theirs), len(r.ours))
	}
	return r
}

// testTimeout is the time limit of a test's waits.
const testTimeout = 20 * time.Second

// ask sends commands to a real server, each after the reply to the one before, on a
// connection whose state is reset.
func (r *reference) ask(tb testing.TB, node *redistest.Node, protocol int, cmds [][][]byte) (all []answer) {
	tb.Helper()
	if _, err := r.exchange(node, words("RESET")[0]); err != nil { // there is no connection yet, or it was closed
		conn, err := net.Dial("tcp", node.Addr)
		if err != nil {
			tb.Fatal(err)
		}
		r.conns[node] = conn
	}
	for i, cmd := range append(words("HELLO "+strconv.Itoa(protocol)), cmds...) {
		a, err := r.exchange(node, cmd)
		if err != nil {
			tb.Fatalf("redis answers %q with %v", cmd, err)
		}
		if i > 0 {
			all = append(all, a)
		}
	}
	return all
}

func (r *reference) exchange(node *redistest.Node, cmd [][]byte) (a answer, err error) {
	conn := r.conns[node]
	if conn == nil {
		return a, net.ErrClosed
	}
	_ = conn.SetDeadline(time.Now().Add(testTimeout))
	out := fmt.Appendf(nil, "*%d\r\n", len(cmd))
	for _, w := range cmd {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err = conn.Write(out); err == nil {
		a, err = readAnswer(bufio.NewReader(conn))
	}
	if err != nil {
		_ = conn.Close()
		delete(r.conns, node)
	}
	return a, err
}

func (r *reference) hangUp() {
	for _, conn := range r.conns {
		_ = conn.Close()
	}
}

// serve passes the same commands to a session of Limitgate.
func (r *reference) serve(tb testing.TB, protocol int, cmds [][][]byte) (all []answer) {
	tb.Helper()
	s := r.handler.NewSession(commands.Peer{ID: 1, Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}})
	defer s.Close()
	s.Serve(context.Background(), words("HELLO "+strconv.Itoa(protocol)), nil)
	for _, cmd := range cmds {
		reply, _, _ := s.Serve(context.Background(), [][][]byte{cmd}, nil)
		in := bufio.NewReader(strings.NewReader(string(reply)))
		a, err := readAnswer(in)
		if _, more := in.ReadByte(); err != nil || more != io.EOF {
			tb.Fatalf("%q is not one reply to %q: %v", reply, cmd, err)
		}
		all = append(all, a)
	}
	return all
}

// fullName returns the name of the command in COMMAND LIST, as far as either side knows
// it.
func (r *reference) fullName(cmd [][]byte) string {
	name := strings.ToLower(string(cmd[0]))
	if len(cmd) > 1 {
		if full := name + "|" + strings.ToLower(string(cmd[1])); r.theirs[full] || r.ours[full] {
			return full
		}
	}
	return name
}

// askable reports whether a command may be sent to the real server, and its reply
// compared: both sides know it, or neither.
func (r *reference) askable(cmd [][]byte) bool {
	full := r.fullName(cmd)
	if strings.Contains(string(cmd[0]), "|") || r.theirs[full] != r.ours[full] {
		return false
	}
	switch full {
	case "client|reply": // which may have no reply, see the transcripts
		return len(cmd) != 3 || !strings.EqualFold(string(cmd[2]), "OFF") && !strings.EqualFold(string(cmd[2]), "SKIP")
	case "command|getkeys", "command|getkeysandflags": // of a command that only one side knows
		return len(cmd) < 4 || r.askable(cmd[2:])
	case "client|tracking": // to another client: there are others on each side
		for i, word := range cmd[:len(cmd)-1] {
			if id, err := strconv.Atoi(string(cmd[i+1])); err == nil && id < 100_000 && strings.EqualFold(string(word), "REDIRECT") {
				return false
			}
		}
	case "config|set": // it would change the server
		return len(cmd) < 3 || string(cmd[2]) == "x" || string(cmd[2]) == "databases"
	}
	return true
}

// node returns the server that a command is compared with.
func (r *reference) node(cmd [][]byte) *redistest.Node {
	switch name, _, _ := strings.Cut(r.fullName(cmd), "|"); name {
	case "cluster", "readonly", "readwrite", "asking":
		return r.owning
	}
	return r.alone
}

// onMemory returns a limiter on an empty memory store.
func onMemory(tb testing.TB) *limiter.Limiter {
	tb.Helper()
	set := storetest.Compile(tb, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1/s"})
	return limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second}, set)
}
