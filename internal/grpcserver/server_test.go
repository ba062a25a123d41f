package grpcserver

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// failingListener fails to accept at first.
type failingListener struct {
	net.Listener
	failures int
}

func (l *failingListener) Accept() (net.Conn, error) {
	if l.failures--; l.failures >= 0 {
		return nil, errors.New("no file descriptor is free")
	}
	return l.Listener.Accept()
}

// TestAccept: failures to accept end nothing, and a closed listener ends Run.
func TestAccept(t *testing.T) {
	l := listen(t)
	var log logBuffer
	opts := testOptions(nil)
	opts.Log = slog.New(slog.NewTextHandler(&log, nil))
	s := New(opts)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context(), &failingListener{l, 2}) }()
	c := dial(t, l.Addr())
	c.request(1, crash, "x")
	c.want("HEADERS 1 OK grpc-status=13 grpc-message=internal error END")
	if got := log.String(); strings.Count(got, "cannot accept a connection") != 2 || !strings.Contains(got, "panic=crash") {
		t.Errorf("the log has %s", got)
	}
	_ = l.Close()
	c.want(announced, endPing)
	c.must(c.Close())
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("Run: %v", err)
	}
}

// logBuffer is a buffer that is safe for concurrent use.
type logBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// TestMaxConns: connections beyond the bound wait until another one ends.
func TestMaxConns(t *testing.T) {
	l := listen(t)
	opts := testOptions(nil)
	opts.MaxConns = 1
	serve(t, opts, l)
	first := dial(t, l.Addr())
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	second := newRawClient(t, conn)
	answer := make(chan string)
	go func() { answer <- second.next() }()
	first.request(1, echo, "hi")
	first.want(answered("1", `"\x00\x00\x00\x00\x02hi"`)...)
	select {
	case got := <-answer:
		t.Fatalf("the second connection got %s", got)
	case <-time.After(20 * time.Millisecond):
	}
	_ = first.Close()
	if got := <-answer; got != "SETTINGS" {
		t.Error(got)
	}
}

// TestHalfClose: a client sees the end of a connection at once, and the last replies before it.
func TestHalfClose(t *testing.T) {
	l := listen(t)
	serve(t, testOptions(nil), l)
	c := dial(t, l.Addr())
	begin := time.Now()
	c.must(c.WriteWindowUpdate(0, 0))
	c.want("GOAWAY 0 PROTOCOL_ERROR", "EOF")
	if took := time.Since(begin); took > lingerTime/2 {
		t.Errorf("the client saw the end after %s", took)
	}
}
