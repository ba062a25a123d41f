package server

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestDrain checks that a batch that is being answered is finished, an idle connection
// closed and no new one accepted.
func TestDrain(t *testing.T) {
	r := start(t, Options{})
	idle, half, busy := r.dial(), r.dial(), r.dial()
	idle.ping()
	half.ping()
	half.send("*1\r\n$4\r\nPI")
	busy.send("BLOCK\r\nPING\r\n")
	receive(t, r.desk.busy)
	// Unread input must not destroy the replies to the input that was read.
	busy.send(strings.Repeat("PING\r\n", 10000))
	r.stop()
	idle.expectEnd("")
	half.expectEnd("")
	if nc, err := net.Dial("tcp", r.addr); err == nil {
		nc.Close()
		t.Error("a connection was made during the drain")
	}
	select {
	case err := <-r.result:
		t.Fatalf("Run returned %v before the batch was answered", err)
	default:
	}
	close(r.desk.proceed)
	busy.expectCleanEnd("+DONE\r\n+PONG\r\n")
	if err := r.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := r.server.Stats(); got.Connections != 0 || got.Total != 3 || got.ProtocolErrors+got.TimedOut != 0 {
		t.Errorf("stats %+v", got)
	}
}

// TestDrainUnderLoad checks that clients that never pause receive whole replies and then
// the end of the connection.
func TestDrainUnderLoad(t *testing.T) {
	r := start(t, Options{})
	var clients sync.WaitGroup
	warm := make(chan struct{}, 8)
	for range cap(warm) {
		c := r.dial()
		clients.Go(func() {
			for i := 0; ; i++ {
				c.send("PING\r\nPING\r\n")
				line, err := c.r.ReadString('\n')
				if err == nil {
					line, err = c.r.ReadString('\n')
				}
				if err != nil {
					if line != "" {
						t.Errorf("connection ended in the middle of a reply: %q", line)
					}
					c.Close()
					return
				}
				if i == 100 {
					warm <- struct{}{}
				}
			}
		})
	}
	for range cap(warm) {
		receive(t, warm)
	}
	if err := r.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
	clients.Wait()
}

// TestDrainSlowReader: a client that is slow to read receives all replies, however much
// it goes on sending.
func TestDrainSlowReader(t *testing.T) {
	r := start(t, Options{})
	c := r.dial()
	if err := c.Conn.(*net.TCPConn).SetReadBuffer(64 << 10); err != nil {
		t.Fatal(err)
	}
	echo := command("ECHO", strings.Repeat("x", 1000))
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		for {
			if _, err := io.WriteString(c.Conn, echo); err != nil {
				return
			}
		}
	}()
	served := func() (n int) {
		for _, commands := range r.desk.served() {
			n += commands
		}
		return n
	}
	await(t, "replies fill the buffers of both ends", func() bool { return served() >= 200 })
	r.stop()
	got, err := io.ReadAll(c.r)
	if reply := len(appendWords(nil, [][]byte{[]byte("ECHO"), make([]byte, 1000)})); err != nil || len(got) != served()*reply {
		t.Errorf("%d bytes and %v, want %d replies of %d bytes", len(got), err, served(), reply)
	}
	c.Close()
	<-sending
	if err := r.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestDrainRunsOutOfTime checks that connections are killed, and that their sessions'
// contexts end.
func TestDrainRunsOutOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{ShutdownTimeout: 5 * time.Second}, ln)
		nc := ln.dial()
		writeAll(t, nc, "BLOCK\r\n")
		receive(t, r.desk.busy)
		before := time.Now()
		err := r.end()
		if err == nil || err.Error() != "drain connections: 1 killed after 5s" {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(before); took != 5*time.Second {
			t.Errorf("Run took %v", took)
		}
		r.closedSession()
		expectEndAfter(t, nc, 0)
	})
}

// TestDrainLeavesStuckSession checks that Run returns even if a session ignores
// that it was killed.
func TestDrainLeavesStuckSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{}, ln)
		nc := ln.dial()
		writeAll(t, nc, "STUCK\r\n")
		receive(t, r.desk.busy)
		before := time.Now()
		err := r.end()
		if err == nil || !strings.Contains(err.Error(), "1 killed") {
			t.Errorf("Run: %v", err)
		}
		if took := time.Since(before); took != 11*time.Second {
			t.Errorf("Run took %v", took)
		}
		close(r.desk.proceed)
		r.closedSession()
	})
}

// TestListenerClosedByOthers checks that Run ends, with an error.
func TestListenerClosedByOthers(t *testing.T) {
	ln := listen(t)
	r := startOn(t, Options{}, ln)
	c := r.dial()
	c.ping()
	ln.Close()
	c.expectEnd("")
	r.ended = true
	if err := receive(t, r.result); !errors.Is(err, net.ErrClosed) || !strings.HasPrefix(err.Error(), "accept connections: ") {
		t.Errorf("Run: %v", err)
	}
}

// TestSeveralListeners runs one server on two listeners that end separately.
func TestSeveralListeners(t *testing.T) {
	r := start(t, Options{MaxConns: 2})
	ln := listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	second := make(chan error, 1)
	go func() { second <- r.server.Run(ctx, ln) }()
	nc, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	a, b := r.dial(), newClient(t, nc)
	a.ping()
	b.ping()
	r.dial().expectEnd("-ERR max number of clients reached\r\n")
	cancel()
	b.expectEnd("")
	if err := receive(t, second); err != nil {
		t.Errorf("Run: %v", err)
	}
	a.ping()
}

// pipeListener accepts in-memory connections, which work in a synctest bubble and have no
// buffers.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn, 100), done: make(chan struct{})}
}

func (l *pipeListener) dial() net.Conn {
	ours, theirs := net.Pipe()
	l.conns <- theirs
	return ours
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.done) })
	return nil
}

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "pipe" }

func writeAll(t *testing.T, nc net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(nc, text); err != nil {
		t.Fatalf("write %q: %v", text, err)
	}
}

func expectLine(t *testing.T, r *bufio.Reader, want string) {
	t.Helper()
	if got, err := r.ReadString('\n'); got != want {
		t.Fatalf("got %q, %v; want %q", got, err, want)
	}
}
