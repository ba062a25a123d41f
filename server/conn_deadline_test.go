package server

import (
	"bufio"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// expectEndAfter reads until the end, which must come after exactly want.
func expectEndAfter(t *testing.T, nc io.Reader, want time.Duration) {
	t.Helper()
	before := time.Now()
	if rest, _ := io.ReadAll(nc); len(rest) != 0 {
		t.Errorf("got %q", rest)
	}
	if took := time.Since(before); took != want {
		t.Errorf("closed after %v, want %v", took, want)
	}
}

// TestIdleTimeout checks that silence ends a connection, counted from the last input.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{IdleTimeout: time.Minute}, ln)
		nc := ln.dial()
		in := bufio.NewReader(nc)
		for range 3 {
			time.Sleep(50 * time.Second)
			writeAll(t, nc, "PING\r\n")
			expectLine(t, in, "+PONG\r\n")
		}
		expectEndAfter(t, in, time.Minute)
		expectEndAfter(t, ln.dial(), time.Minute)
		if got := r.server.Stats().TimedOut; got != 2 {
			t.Errorf("%d timed out, want 2", got)
		}
	})
}

// TestNoIdleTimeout checks that connections may be silent by default, also after a
// half-sent command.
func TestNoIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		startOn(t, Options{}, ln)
		nc := ln.dial()
		in := bufio.NewReader(nc)
		for range 3 {
			time.Sleep(24 * time.Hour)
			writeAll(t, nc, "PI")
			time.Sleep(29 * time.Second)
			writeAll(t, nc, "NG\r\n")
			expectLine(t, in, "+PONG\r\n")
		}
		nc.Close()
	})
}

// TestRequestTimeout checks that a half-sent command may take no longer than
// RequestTimeout, whether it stalls or trickles.
func TestRequestTimeout(t *testing.T) {
	for _, begin := range []string{"P", "*", "*1\r\n", "*1\r\n$4\r\nPI", "*2\r\n$4\r\nPING\r\n"} {
		synctest.Test(t, func(t *testing.T) {
			ln := newPipeListener()
			r := startOn(t, Options{RequestTimeout: 30 * time.Second, IdleTimeout: time.Hour}, ln)
			nc := ln.dial()
			in := bufio.NewReader(nc)
			time.Sleep(10 * time.Minute)
			writeAll(t, nc, "PING\r\n")
			expectLine(t, in, "+PONG\r\n")
			time.Sleep(10 * time.Minute)
			writeAll(t, nc, begin[:1])
			time.Sleep(20 * time.Second)
			if len(begin) > 1 {
				writeAll(t, nc, begin[1:])
			}
			expectEndAfter(t, in, 10*time.Second)
			if got := r.server.Stats().TimedOut; got != 1 {
				t.Errorf("%d timed out, want 1", got)
			}
		})
	}
}

// TestRequestTimeoutIsPerCommand checks that the next command has its full time after one
// that arrived late.
func TestRequestTimeoutIsPerCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		startOn(t, Options{}, ln)
		nc := ln.dial()
		in := bufio.NewReader(nc)
		writeAll(t, nc, "PI")
		for range 3 {
			time.Sleep(20 * time.Second)
			writeAll(t, nc, "NG\r\nPI")
			expectLine(t, in, "+PONG\r\n")
		}
		expectEndAfter(t, in, 30*time.Second)
	})
}

// TestSlowReader checks that a client that does not read is cut off, and that one that
// reads slowly is not.
func TestSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{}, ln)
		nc := ln.dial()
		writeAll(t, nc, "PING\r\n")
		time.Sleep(9 * time.Second)
		expectLine(t, bufio.NewReader(nc), "+PONG\r\n")
		writeAll(t, nc, "PING\r\n")
		before := time.Now()
		r.closedSession()
		if took := time.Since(before); took != 10*time.Second {
			t.Errorf("closed after %v", took)
		}
		synctest.Wait() // the connection ends after its session
		if got := r.server.Stats(); got.SlowReaders != 1 || got.Connections != 0 {
			t.Errorf("stats %+v", got)
		}
	})
}

// TestSlowReaderOverTCP fills the kernel's buffers first.
func TestSlowReaderOverTCP(t *testing.T) {
	r := start(t, Options{WriteTimeout: 20 * time.Millisecond})
	c, bystander := r.dial(), r.dial()
	bystander.ping()
	go func() {
		pipeline := strings.Repeat(command("ECHO", strings.Repeat("z", 10000)), 100)
		for {
			if _, err := io.WriteString(c.Conn, pipeline); err != nil {
				return
			}
		}
	}()
	r.closedSession()
	if got := r.server.Stats().SlowReaders; got != 1 {
		t.Errorf("%d slow readers, want 1", got)
	}
	bystander.ping()
}

// TestIdleTimeoutBelowQuietTime checks that a large buffer does not extend the idle
// timeout of a connection.
func TestIdleTimeoutBelowQuietTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		startOn(t, Options{IdleTimeout: quietTime / 2}, ln)
		nc := ln.dial()
		in := bufio.NewReader(nc)
		go func() { _, _ = io.WriteString(nc, strings.Repeat("PING\r\n", 5000)) }()
		for range 5000 {
			expectLine(t, in, "+PONG\r\n")
		}
		expectEndAfter(t, in, quietTime/2)
	})
}

// readSizes records the buffer size of each read of the connections it accepts.
type readSizes struct {
	*pipeListener
	mu    sync.Mutex // guards sizes
	sizes []int
}

type notedConn struct {
	net.Conn
	noted *readSizes
}

func (l *readSizes) Accept() (net.Conn, error) {
	nc, err := l.pipeListener.Accept()
	return notedConn{nc, l}, err
}

func (c notedConn) Read(p []byte) (int, error) {
	c.noted.mu.Lock()
	c.noted.sizes = append(c.noted.sizes, len(p))
	c.noted.mu.Unlock()
	return c.Conn.Read(p)
}

func (l *readSizes) last() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sizes[len(l.sizes)-1]
}

// TestQuietConnectionIsSmall checks that the memory that pipelines and huge commands
// needed is released.
func TestQuietConnectionIsSmall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := &readSizes{pipeListener: newPipeListener()}
		startOn(t, Options{IdleTimeout: time.Minute, MaxBulk: 1 << 20, MaxRequest: 2 << 20}, ln)
		nc := ln.dial()
		in := bufio.NewReader(nc)
		pipeline := strings.Repeat("PING\r\n", 50000)
		go func() { _, _ = io.WriteString(nc, pipeline) }()
		for range 50000 {
			expectLine(t, in, "+PONG\r\n")
		}
		synctest.Wait()
		if got := ln.last(); got != batchBytes {
			t.Errorf("a busy connection reads %d bytes, want %d", got, batchBytes)
		}
		huge := command("ECHO", strings.Repeat("h", 900<<10))
		go func() { _, _ = io.WriteString(nc, huge) }()
		if _, err := io.CopyN(io.Discard, in, int64(len(huge))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := ln.last(); got > batchBytes {
			t.Errorf("after a huge command %d bytes stay", got)
		}
		go func() { _, _ = io.WriteString(nc, pipeline) }()
		for range 50000 {
			expectLine(t, in, "+PONG\r\n")
		}
		time.Sleep(quietTime + time.Second)
		if got := ln.last(); got != smallBuffer {
			t.Errorf("a quiet connection reads %d bytes, want %d", got, smallBuffer)
		}
		expectEndAfter(t, in, time.Minute-quietTime-time.Second)
	})
}
