package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// watched is a socket of a test, and its other end.
type watched struct {
	*Socket
	peer  *net.TCPConn
	mu    sync.Mutex // guards input
	input []byte
	ended chan error
}

// startLoops runs loops until the test ends, or the returned function is called.
func startLoops(t *testing.T) (loops *Loops, stop func()) {
	t.Helper()
	loops, err := NewLoops(1)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loops.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return loops, stop
}

// pair returns a socket of a loop that nothing watches yet, and its other end.
func pair(t *testing.T, loops *Loops) *watched {
	t.Helper()
	near, far := dialPair(t)
	return adopted(t, loops, near, far)
}

// adopted returns the socket of an end of a connection.
func adopted(t *testing.T, loops *Loops, near, far *net.TCPConn) *watched {
	t.Helper()
	s, err := loops.Adopt(near)
	if err != nil {
		t.Fatal(err)
	}
	return &watched{Socket: s, peer: far, ended: make(chan error, 2)}
}

// dialPair returns both ends of a connection.
func dialPair(t *testing.T) (near, far *net.TCPConn) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	dialled, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := ln.Accept()
	if err != nil {
		t.Fatal(err)
	}
	near, far = dialled.(*net.TCPConn), accepted.(*net.TCPConn)
	t.Cleanup(func() { _ = far.Close() })
	_ = near.SetWriteBuffer(4 << 10)
	_ = far.SetReadBuffer(64 << 10)
	return near, far
}

// watch collects the input.
func (w *watched) watch() *watched {
	buf := make([]byte, 100)
	w.Watch(func() error {
		n, err := w.Read(buf)
		if errors.Is(err, unix.EAGAIN) {
			return nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.input = append(w.input, buf[:max(0, n)]...)
		return err
	}, func(err error) { w.ended <- err })
	return w
}

func (w *watched) wantEnd(t *testing.T, want error) {
	t.Helper()
	if got := receive(t, w.ended); !errors.Is(got, want) {
		t.Errorf("ended with %v, want %v", got, want)
	}
	if _, err := w.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a write afterwards: %v", err)
	}
	w.HangUp()
	select {
	case again := <-w.ended:
		t.Errorf("ended again with %v", again)
	default:
	}
}

// TestSocketWritesRest: a write does not wait for a peer that does not read. The loop writes the
// rest when it does, in order, and more than a bound is refused.
func TestSocketWritesRest(t *testing.T) {
	loops, _ := startLoops(t)
	w := pair(t, loops)
	var sent []byte
	write := func(size int) {
		b := bytes.Repeat([]byte{byte(len(sent)), 'x', 'y'}, size/3)
		sent = append(sent, b...)
		if n, err := w.Write(b); err != nil || n != len(b) {
			t.Fatalf("%d bytes of %d: %v", n, len(b), err)
		}
	}
	write(1 << 20) // before the loop watches, too
	w.watch()
	for range 20 {
		write(100_000)
	}
	if _, err := w.Write(make([]byte, maxUnwritten)); err == nil {
		t.Error("a socket keeps any number of bytes")
	}
	got := make([]byte, len(sent))
	_ = w.peer.SetReadDeadline(time.Now().Add(testTimeout))
	if n, err := io.ReadFull(w.peer, got); err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d bytes of %d: %v, or other bytes than were sent", n, len(sent), err)
	}
	if _, err := w.Write([]byte("after")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(w.peer, got[:5]); err != nil || string(got[:5]) != "after" {
		t.Errorf("got %q, %v", got[:5], err)
	}
}

// TestSocketWritesBeforeItIsWatched: a rest is kept until the loop has begun to watch.
func TestSocketWritesBeforeItIsWatched(t *testing.T) {
	loops, err := NewLoops(1)
	if err != nil {
		t.Fatal(err)
	}
	w := pair(t, loops).watch() // the loop does not run yet
	sent := bytes.Repeat([]byte("0123456789"), 100_000)
	if _, err := w.Write(sent); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- loops.Run(ctx) }()
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(w.peer, got); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%v, or other bytes than were sent", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestSocketReads: all input arrives, in order, and then the end.
func TestSocketReads(t *testing.T) {
	loops, _ := startLoops(t)
	w := pair(t, loops)
	want := bytes.Repeat([]byte("0123456789"), 20_000)
	go func() {
		_, _ = w.peer.Write(want)
		_ = w.peer.CloseWrite()
	}()
	w.watch().wantEnd(t, io.EOF)
	if !bytes.Equal(w.input, want) {
		t.Errorf("%d bytes of %d, or other ones", len(w.input), len(want))
	}
}

// TestSocketEnds: each way to end a connection is reported once, and closes it.
func TestSocketEnds(t *testing.T) {
	expectClosed := func(t *testing.T, w *watched) {
		t.Helper()
		_ = w.peer.SetReadDeadline(time.Now().Add(testTimeout))
		if _, err := w.peer.Read(make([]byte, 1)); !errors.Is(err, io.EOF) && !errors.Is(err, unix.ECONNRESET) {
			t.Errorf("the peer reads: %v", err)
		}
	}
	t.Run("hung up", func(t *testing.T) {
		loops, _ := startLoops(t)
		w := pair(t, loops).watch()
		w.HangUp()
		w.wantEnd(t, io.EOF)
		expectClosed(t, w)
	})
	t.Run("hung up before it is watched", func(t *testing.T) {
		loops, _ := startLoops(t)
		w := pair(t, loops)
		w.HangUp()
		expectClosed(t, w)
		w.watch().wantEnd(t, net.ErrClosed)
	})
	t.Run("reset", func(t *testing.T) {
		loops, _ := startLoops(t)
		w := pair(t, loops).watch()
		_ = w.peer.SetLinger(0)
		_ = w.peer.Close()
		w.wantEnd(t, unix.ECONNRESET)
	})
	t.Run("reset under an unsent rest", func(t *testing.T) {
		loops, _ := startLoops(t)
		w := pair(t, loops).watch()
		if _, err := w.Write(make([]byte, 4<<20)); err != nil {
			t.Fatal(err)
		}
		_ = w.peer.SetLinger(0)
		_ = w.peer.Close()
		if err := receive(t, w.ended); err == nil {
			t.Error("no error")
		}
	})
	t.Run("end of the loops", func(t *testing.T) {
		loops, stop := startLoops(t)
		w := pair(t, loops).watch()
		stop()
		w.wantEnd(t, io.EOF)
		expectClosed(t, w)
		pair(t, loops).watch().wantEnd(t, net.ErrClosed)
	})
	t.Run("an error of its reader", func(t *testing.T) {
		loops, _ := startLoops(t)
		w := pair(t, loops)
		w.Watch(func() error { return errTimeout }, func(err error) { w.ended <- err })
		_, _ = w.peer.Write([]byte("x"))
		w.wantEnd(t, errTimeout)
		expectClosed(t, w)
	})
}

// TestSocketOfAnUsedNumber: the number of a descriptor may be that of another socket when one that
// was hung up is to be watched.
func TestSocketOfAnUsedNumber(t *testing.T) {
	loops, _ := startLoops(t)
	for range 100 {
		gone := pair(t, loops)
		near, far := dialPair(t)
		gone.HangUp()
		other := adopted(t, loops, near, far)
		if other.fd != gone.fd {
			other.HangUp()
			continue
		}
		other.watch()
		gone.watch().wantEnd(t, net.ErrClosed)
		if _, err := other.peer.Write([]byte("input")); err != nil {
			t.Fatal(err)
		}
		_ = other.peer.CloseWrite()
		other.wantEnd(t, io.EOF)
		if string(other.input) != "input" {
			t.Errorf("the other socket has read %q", other.input)
		}
		return
	}
	t.Error("no number was used again")
}

// TestSocketBesideClients: a loop serves clients and sockets, and the peer of a socket that
// neither reads nor ends its replies does not delay the clients.
func TestSocketBesideClients(t *testing.T) {
	loops, _ := startLoops(t)
	w := pair(t, loops).watch()
	r := start(t, Options{Loops: loops})
	if _, err := w.Write(make([]byte, 4<<20)); err != nil { // which the peer does not read
		t.Fatal(err)
	}
	c := r.dial()
	for i := range 200 {
		if _, err := w.peer.Write([]byte{byte(i)}); err != nil {
			t.Fatal(err)
		}
		c.ping()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.input) == 0 {
		t.Error("the loop has read nothing")
	}
}

// TestServersShareLoops: the end of one server leaves the connections of another alone.
func TestServersShareLoops(t *testing.T) {
	loops, _ := startLoops(t)
	one, other := start(t, Options{Loops: loops}), start(t, Options{Loops: loops})
	first, second := one.dial(), other.dial()
	first.ping()
	second.ping()
	if err := one.end(); err != nil {
		t.Error(err)
	}
	first.expectEnd("")
	second.ping()
	other.dial().ping()
}
