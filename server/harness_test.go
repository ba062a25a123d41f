package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/internal/syncbuffer"
)

// testTimeout is the time limit of a test's waits. Tests never sleep for it.
const testTimeout = 20 * time.Second

// desk is shared by the sessions of one test.
type desk struct {
	mu    sync.Mutex // guards the fields below
	calls []int      // the number of commands of each call of Serve

	walks   atomic.Int64  // WALKs that were started
	closed  chan int64    // receives the ID of each session that is closed
	busy    chan struct{} // receives a value when a BLOCK is being answered
	proceed chan struct{} // BLOCK waits for this to be closed, or its context
}

func newDesk() *desk {
	return &desk{
		closed:  make(chan int64, 1000),
		busy:    make(chan struct{}, 1000),
		proceed: make(chan struct{}),
	}
}

func (d *desk) newSession(p Peer) Session { return &clerk{desk: d, peer: p} }

func (d *desk) served() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]int(nil), d.calls...)
}

// clerk is a session with a few commands.
type clerk struct {
	desk    *desk
	peer    Peer
	serving bool
	held    int
}

// Weigh: all commands wait, except those whose names say otherwise.
func (c *clerk) Weigh(cmd [][]byte) (waits, long bool) {
	switch strings.ToUpper(string(cmd[0])) {
	case "LIGHT", "LIGHTBIG":
		return false, false
	case "LONG", "WALK":
		return true, true
	}
	return true, false
}

func (c *clerk) Held() int { return c.held }

func (c *clerk) Serve(ctx context.Context, cmds [][][]byte, out []byte) ([]byte, int, bool) {
	if c.serving {
		panic("used concurrently")
	}
	c.serving = true
	defer func() { c.serving = false }()
	cmds = c.stretch(cmds)
	c.desk.mu.Lock()
	c.desk.calls = append(c.desk.calls, len(cmds))
	c.desk.mu.Unlock()
	for i, cmd := range cmds {
		if i > 0 && len(out) >= largeReply {
			return out, i, false
		}
		var quit bool
		if out, quit = c.answer(ctx, cmd, out); quit {
			return out, i + 1, true
		}
	}
	return out, len(cmds), false
}

// stretch returns the commands that are answered together with the first.
func (c *clerk) stretch(cmds [][][]byte) [][][]byte {
	first := weigh(c, cmds[0])
	for i := range cmds {
		if i > 0 && (first == long || weigh(c, cmds[i]) > first) {
			return cmds[:i]
		}
	}
	return cmds
}

func (c *clerk) answer(ctx context.Context, cmd [][]byte, out []byte) ([]byte, bool) {
	switch strings.ToUpper(string(cmd[0])) {
	case "PING":
		return append(out, "+PONG\r\n"...), false
	case "ECHO": // all words, so that a test sees where they begin and end
		return appendWords(out, cmd), false
	case "AUTH":
		c.peer.SetAuthenticated(string(cmd[1]) == "yes")
		return append(out, "+OK\r\n"...), false
	case "KILL":
		c.peer.Kill()
		return append(out, "+OK\r\n"...), false
	case "BLOCK":
		c.desk.busy <- struct{}{}
		select {
		case <-c.desk.proceed:
			return append(out, "+DONE\r\n"...), false
		case <-ctx.Done():
			return append(out, "+CANCELLED\r\n"...), false
		}
	case "WALK": // takes until its context ends
		if ctx.Err() != nil {
			return append(out, "-ERR not run\r\n"...), false
		}
		c.desk.walks.Add(1)
		c.desk.busy <- struct{}{}
		select {
		case <-c.desk.proceed:
			return append(out, "+DONE\r\n"...), false
		case <-ctx.Done():
			return append(out, "-ERR ended\r\n"...), false
		}
	case "KEEP":
		c.held, _ = strconv.Atoi(string(cmd[1]))
		return append(out, "+QUEUED\r\n"...), false
	case "BIG", "LIGHTBIG": // as COMMAND DOCS
		return append(out, bigReply...), false
	case "LIGHT":
		return append(out, "+LIGHT\r\n"...), false
	case "STUCK":
		c.desk.busy <- struct{}{}
		<-c.desk.proceed
		return out, false
	case "SILENCE":
		return out, false
	case "PANIC":
		panic("what the client sent: " + string(cmd[1]))
	case "FAULT":
		return append(out, cmd[len(cmd)][0]), false
	case "QUIT":
		return append(out, "+OK\r\n"...), true
	}
	return append(out, "-ERR unknown command\r\n"...), false
}

var bigReply = appendWords(nil, [][]byte{make([]byte, 30<<10)})

func (c *clerk) Close() {
	if c.serving {
		panic("closed while serving")
	}
	c.desk.closed <- c.peer.ID
}

func appendWords(out []byte, words [][]byte) []byte {
	out = fmt.Appendf(out, "*%d\r\n", len(words))
	for _, w := range words {
		out = fmt.Appendf(out, "$%d\r\n%s\r\n", len(w), w)
	}
	return out
}

func command(words ...string) string {
	all := make([][]byte, len(words))
	for i, w := range words {
		all[i] = []byte(w)
	}
	return string(appendWords(nil, all))
}

// run is a running server.
type run struct {
	t      testing.TB
	server *Server
	desk   *desk
	addr   string
	stop   context.CancelFunc
	result chan error
	ended  bool
}

// start runs a server on a loopback port, and stops it when the test ends.
func start(t testing.TB, opts Options) *run {
	t.Helper()
	return startOn(t, opts, listen(t))
}

// listen returns a listener on a free loopback port. When the test has ended,
// there must be no goroutine left.
func listen(t testing.TB) net.Listener {
	t.Helper()
	if _, ok := t.(*testing.T); ok { // a benchmark has goroutines of its own
		t.Cleanup(func() { goleak.VerifyNone(t) })
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func startOn(t testing.TB, opts Options, ln net.Listener) *run {
	t.Helper()
	if ln.Addr() == (pipeAddr{}) {
		opts.Loops = &Loops{} // a loop would keep the clock of a bubble from moving
	}
	d := newDesk()
	return startWith(t, New(opts, d.newSession), d, ln)
}

func startWith(t testing.TB, s *Server, d *desk, ln net.Listener) *run {
	t.Helper()
	r := &run{t: t, desk: d, server: s, addr: ln.Addr().String()}
	ctx, cancel := context.WithCancel(t.Context())
	r.stop = cancel
	r.result = make(chan error, 1)
	go func() { r.result <- r.server.Run(ctx, ln) }()
	t.Cleanup(func() {
		if r.ended {
			return
		}
		if err := r.end(); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return r
}

// end stops the server and returns what Run returned.
func (r *run) end() error {
	r.t.Helper()
	r.ended = true
	r.stop()
	select {
	case err := <-r.result:
		return err
	case <-time.After(testTimeout):
		r.t.Fatal("Run does not return")
		return nil
	}
}

// client is one end of a connection.
type client struct {
	t testing.TB
	net.Conn
	r *bufio.Reader
}

func (r *run) dial() *client {
	r.t.Helper()
	nc, err := net.Dial("tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	return newClient(r.t, nc)
}

func newClient(t testing.TB, nc net.Conn) *client {
	t.Helper()
	if err := nc.SetDeadline(time.Now().Add(testTimeout)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	return &client{t: t, Conn: nc, r: bufio.NewReader(nc)}
}

// send writes. It ignores that the server closes the connection meanwhile.
func (c *client) send(text string) {
	_, _ = io.WriteString(c.Conn, text)
}

// expect reads exactly want.
func (c *client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.r, got)
	if err != nil || string(got) != want {
		c.t.Fatalf("got %q, %v; want %q", shorten(got[:n]), err, shorten([]byte(want)))
	}
}

// expectEnd reads exactly want and then the end of the connection, and closes the
// client's side of it.
func (c *client) expectEnd(want string) {
	c.t.Helper()
	got, err := io.ReadAll(c.r)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.t.Fatalf("connection stays open after %q", shorten(got))
	}
	if string(got) != want {
		c.t.Fatalf("got %q, %v; want %q and the end", shorten(got), err, shorten([]byte(want)))
	}
	c.Close()
}

func (c *client) ping() {
	c.t.Helper()
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
}

// expectCleanEnd is like expectEnd, but fails on a reset, which may destroy replies on
// their way.
func (c *client) expectCleanEnd(want string) {
	c.t.Helper()
	c.expect(want)
	if _, err := c.r.ReadByte(); err != io.EOF {
		c.t.Fatalf("connection ended with %v", err)
	}
	c.Close()
}

// closedSession waits until a session is closed and returns its ID.
func (r *run) closedSession() int64 {
	r.t.Helper()
	return receive(r.t, r.desk.closed)
}

func receive[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(testTimeout):
		t.Fatal("waited in vain")
		panic("unreachable")
	}
}

// await polls until the condition holds, for conditions without a notification.
func await(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !condition(); runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain until %s", what)
		}
	}
}

func shorten(b []byte) string {
	if len(b) > 200 {
		return string(b[:200]) + "... (" + strconv.Itoa(len(b)) + " bytes)"
	}
	return string(b)
}

// capture collects the log of the test.
func capture(t *testing.T) func() string {
	t.Helper()
	log := new(syncbuffer.Buffer)
	old := slog.Default()
	t.Cleanup(func() { slog.SetDefault(old) })
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	return log.String
}
