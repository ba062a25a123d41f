package emf

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// startQueue runs a queue that tries a failing sink again at once, and returns a function that ends
// it.
func startQueue(t *testing.T, sink Sink) (q *queue, end func()) {
	t.Helper()
	q = newQueue(sink, slog.New(slog.DiscardHandler))
	q.wait = time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = q.run(ctx)
	}()
	return q, func() {
		cancel()
		<-done
	}
}

// listen listens, on any port if addr is empty.
func listen(t *testing.T, addr string) *net.TCPListener {
	t.Helper()
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.(*net.TCPListener)
}

// accept returns the next connection, on which reads end after a while.
func accept(t *testing.T, l *net.TCPListener) (net.Conn, *bufio.Reader) {
	t.Helper()
	late := time.Now().Add(20 * time.Second)
	_ = l.SetDeadline(late)
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(late)
	return conn, bufio.NewReader(conn)
}

// expect reads lines, which must have the numbers from the first to the last.
func expect(t *testing.T, r *bufio.Reader, first, last int) {
	t.Helper()
	for i := first; i <= last; i++ {
		if line, err := r.ReadString('\n'); err != nil || line != fmt.Sprintf("line %d\n", i) {
			t.Fatalf("got %q, %v, want line %d", line, err, i)
		}
	}
}

// lines returns lines with the numbers from the first to the last.
func lines(first, last int) (all []byte) {
	for i := first; i <= last; i++ {
		all = fmt.Appendf(all, "line %d\n", i)
	}
	return all
}

// TestTCP checks that the lines of a time without a receiver arrive when it is back.
func TestTCP(t *testing.T) {
	first := listen(t, "")
	addr := first.Addr().String()
	q, end := startQueue(t, NewTCP(addr))
	q.add(lines(1, 3))
	conn, r := accept(t, first)
	expect(t, r, 1, 3)
	_ = first.Close()
	_ = conn.Close()
	q.add(lines(4, 5))
	q.add(lines(6, 6))
	second := listen(t, addr)
	conn, r = accept(t, second)
	expect(t, r, 4, 6)
	q.add(lines(7, 9))
	expect(t, r, 7, 9)
	q.add(lines(10, 10))
	end()
	expect(t, r, 10, 10)
	if _, err := r.ReadByte(); err != io.EOF || q.lost.Load() != 0 || q.bytes != 0 {
		t.Errorf("%v at the end, %d lines are lost and %d bytes queued", err, q.lost.Load(), q.bytes)
	}
	_ = conn.Close()
}

// TestTCPStalls checks that a receiver that reads nothing holds up neither lines nor the end, and that
// the lines that it reads later are whole and in order.
func TestTCPStalls(t *testing.T) {
	l := listen(t, "")
	q, end := startQueue(t, NewTCP(l.Addr().String()))
	q.most = 1 << 20
	const perBatch, mostBatches = 10_000, 1000
	line := strings.Repeat("x", 97) + "\n"
	batch := []byte(strings.Repeat(line, perBatch))
	q.add(batch)
	conn, r := accept(t, l)
	added := int64(perBatch)
	for ; q.lost.Load() < 5*perBatch; added += perBatch {
		if added == mostBatches*perBatch {
			t.Fatal("no line is lost")
		}
		q.add(batch)
		if queued := q.queued(); queued > q.most {
			t.Fatalf("%d bytes are queued", queued)
		}
	}
	begin := time.Now()
	end()
	if took := time.Since(begin); took > 10*flushTime {
		t.Errorf("the end took %s", took)
	}
	arrived := int64(0)
	for {
		text, err := r.ReadString('\n')
		if err != nil {
			break // a line may end in the middle with the connection
		}
		if arrived++; text != line {
			t.Fatalf("a broken line: %q", text)
		}
	}
	// The system may have taken a part of the batch that was being sent.
	if sum := arrived + q.lost.Load(); sum < added || sum > added+perBatch {
		t.Errorf("of %d lines %d arrived, and %d are lost", added, arrived, q.lost.Load())
	}
	_ = conn.Close()
}

// queued returns the bytes that are queued.
func (q *queue) queued() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.bytes
}

// TestTCPPart checks that a line of which a part was sent is sent again as a whole.
func TestTCPPart(t *testing.T) {
	l := listen(t, "")
	s := &tcp{addr: l.Addr().String()}
	defer s.Close()
	s.conn = &tornConn{left: len("line 1\nline 2\nli")}
	all := lines(1, 4)
	n, err := s.Write(t.Context(), all)
	if err == nil || n != len("line 1\nline 2\n") || s.conn != nil {
		t.Fatalf("took %d bytes, %v", n, err)
	}
	if n, err = s.Write(t.Context(), all[n:]); err != nil {
		t.Fatal(n, err)
	}
	_, r := accept(t, l)
	expect(t, r, 3, 4)
}

// tornConn is a connection that breaks after some bytes.
type tornConn struct {
	net.Conn
	left int
}

func (c *tornConn) Write([]byte) (int, error) { return c.left, net.ErrClosed }

func (c *tornConn) Read([]byte) (int, error) { return 0, os.ErrDeadlineExceeded }

func (c *tornConn) SetReadDeadline(time.Time) error { return nil }

func (c *tornConn) Close() error { return nil }

// TestFile checks that a file is appended to, opened again after it was rotated away or deleted, and
// after its folder was away for some time.
func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	path := filepath.Join(dir, "emf.json")
	if _, err := OpenFile(path); err == nil {
		t.Error("a file in a folder that does not exist was opened")
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, lines(1, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	s, err := OpenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write := func(first, last int) error {
		_, err := s.Write(t.Context(), lines(first, last))
		return err
	}
	check := func(path string, first, last int) {
		t.Helper()
		if text, err := os.ReadFile(path); err != nil || !bytes.Equal(text, lines(first, last)) {
			t.Errorf("%s has %q, %v", path, text, err)
		}
	}
	for _, err := range []error{write(2, 3), os.Rename(path, path+".1"), write(4, 4), write(5, 5), os.Rename(dir, dir+"2")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := write(6, 6); err == nil {
		t.Error("a line was written without a folder")
	}
	check(filepath.Join(dir+"2", "emf.json.1"), 1, 3)
	check(filepath.Join(dir+"2", "emf.json"), 4, 5)
	for _, err := range []error{os.Mkdir(dir, 0o755), write(6, 7), os.Remove(path), write(8, 8), s.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	check(path, 8, 8)
}

// TestPipe checks that a named pipe, which nothing reads, is refused and not waited for.
func TestPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(path); err == nil || !strings.Contains(err.Error(), "is a pipe or a socket") {
		t.Errorf("got %v", err)
	}
}
