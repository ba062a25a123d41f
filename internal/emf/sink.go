package emf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Sink takes lines.
type Sink interface {
	// Write writes lines until ctx ends, and returns how many bytes it has taken. After an error it is
	// called again with the rest. It may wait as long as nothing takes the lines.
	Write(ctx context.Context, lines []byte) (n int, err error)
	// Close releases the sink.
	Close() error
}

// NewStream returns a sink that writes to out, which it does not close.
func NewStream(out io.Writer) Sink { return stream{out} }

type stream struct{ out io.Writer }

// Write implements Sink. It does not end with ctx: a blocked pipe cannot be interrupted.
func (s stream) Write(_ context.Context, lines []byte) (int, error) { return s.out.Write(lines) }

// Close implements Sink.
func (stream) Close() error { return nil }

// fileMode lets agents of other users read the lines, which are about no client.
const fileMode = 0o644

// OpenFile returns a sink that appends to a file. It opens the file again when another one, or none,
// is at the path.
func OpenFile(path string) (Sink, error) {
	s := &file{path: path}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

type file struct {
	path string
	file *os.File // nil if it could not be opened
}

// open opens the file at the path.
func (s *file) open() error {
	if info, err := os.Stat(s.path); err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0 {
		return fmt.Errorf("open metrics file: %s is a pipe or a socket, which would wait for a reader: name a file", s.path)
	}
	f, err := os.OpenFile(s.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, fileMode)
	if err != nil {
		return fmt.Errorf("open metrics file: %w", err)
	}
	s.file = f
	return nil
}

// Write implements Sink.
func (s *file) Write(_ context.Context, lines []byte) (int, error) {
	if s.file != nil && s.rotated() {
		_ = s.file.Close()
		s.file = nil
	}
	if s.file == nil {
		if err := s.open(); err != nil {
			return 0, err
		}
	}
	n, err := s.file.Write(lines)
	if err != nil {
		return n, fmt.Errorf("write metrics file: %w", err)
	}
	return n, nil
}

// rotated reports whether the open file is not the one at the path.
func (s *file) rotated() bool {
	there, err := os.Stat(s.path)
	if err != nil {
		return true
	}
	own, err := s.file.Stat()
	return err != nil || !os.SameFile(there, own)
}

// Close implements Sink.
func (s *file) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// dialTimeout bounds a connection to an agent that does not answer.
const dialTimeout = time.Second

// NewTCP returns a sink that sends lines to an address, such as the port of the CloudWatch agent. It
// connects when there are lines, and again when the connection has ended. Lines that the system has
// taken and the receiver has not read when it dies are lost, and not counted.
func NewTCP(addr string) Sink { return &tcp{addr: addr} }

type tcp struct {
	addr string
	conn net.Conn // nil if there is none
}

// Write implements Sink. A receiver that reads nothing makes it wait: another connection would be
// as little read, and what the system takes for it lost.
func (s *tcp) Write(ctx context.Context, lines []byte) (int, error) {
	if s.conn != nil && isClosed(s.conn) {
		_ = s.Close()
	}
	if s.conn == nil {
		dialer := net.Dialer{Timeout: dialTimeout}
		conn, err := dialer.DialContext(ctx, "tcp", s.addr)
		if err != nil {
			return 0, fmt.Errorf("connect to the receiver of metrics: %w", err)
		}
		s.conn = conn
	}
	conn := s.conn
	interrupt := context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Now()) })
	defer interrupt()
	n, err := conn.Write(lines)
	if err != nil {
		_ = s.Close()
		// A line that was sent in part is sent again, on the next connection.
		return bytes.LastIndexByte(lines[:n], '\n') + 1, fmt.Errorf("send metrics: %w", err)
	}
	return n, nil
}

// probeTime is how long a connection is read to see whether it has ended.
const probeTime = time.Millisecond

// isClosed reports whether the peer has closed a connection, on which it sends nothing. The system
// would take more lines for it.
func isClosed(conn net.Conn) bool {
	_ = conn.SetReadDeadline(time.Now().Add(probeTime))
	var b [1]byte
	_, err := conn.Read(b[:])
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

// Close implements Sink.
func (s *tcp) Close() error {
	if s.conn == nil {
		return nil
	}
	conn := s.conn
	s.conn = nil
	return conn.Close()
}
