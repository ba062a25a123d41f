package server

import (
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// maxUnwritten bounds the bytes that a socket keeps until the kernel takes them: more than
// the requests in flight of one connection usually have.
const maxUnwritten = 8 << 20

// Socket is a connection to another server whose input an event loop reads. Neither reads nor
// writes of it wait. Its methods are safe for concurrent use, except Read.
type Socket struct {
	loop *eventLoop
	fd   int
	// ready and ended are called in the loop, see Watch. Only the loop uses them.
	ready func() error
	ended func(error)

	mu      sync.Mutex // guards the fields below, and that fd is open
	closed  bool
	watched bool   // Watch was called: the loop closes fd
	added   bool   // epoll knows fd
	rest    []byte // written by the loop as soon as the kernel takes it
}

// newSocket takes over a connection.
func (p *eventLoop) newSocket(tcp *net.TCPConn) (*Socket, error) {
	fd, err := duplicate(tcp)
	if err != nil {
		return nil, fmt.Errorf("take over a connection: %w", err)
	}
	_ = tcp.Close()
	return &Socket{loop: p, fd: fd}, nil
}

// Watch makes the loop call ready whenever there may be input, and when the connection has ended.
// When ready returns an error the loop closes the socket, and then calls ended with the error.
// It also does so if the socket cannot be watched. Watch may be called once.
func (s *Socket) Watch(ready func() error, ended func(error)) {
	s.ready, s.ended = ready, ended
	s.mu.Lock()
	s.watched = true
	s.mu.Unlock()
	watch := func(*epollConn) {
		if err := s.begin(); err != nil {
			s.end(err)
		}
	}
	if !s.loop.post(nil, 0, watch) {
		s.end(net.ErrClosed)
	}
}

// begin starts watching.
func (s *Socket) begin() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return net.ErrClosed
	}
	s.loop.sockets[int32(s.fd)] = s
	if err := s.control(unix.EPOLL_CTL_ADD); err != nil {
		return fmt.Errorf("watch a connection: %w", err)
	}
	s.added = true
	return nil
}

// control sets the events that epoll reports. The caller holds mu.
func (s *Socket) control(what int) error {
	events := uint32(unix.EPOLLIN)
	if len(s.rest) > 0 {
		events |= unix.EPOLLOUT
	}
	return unix.EpollCtl(s.loop.epoll, what, s.fd, &unix.EpollEvent{Events: events, Fd: int32(s.fd)})
}

// end closes the socket and reports that. Only the loop calls it, or Watch if the loop has ended.
func (s *Socket) end(why error) {
	s.release()
	s.ended(why)
}

// release closes the descriptor.
func (s *Socket) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.loop.sockets[int32(s.fd)] == s { // the number of a closed one may be that of another
		delete(s.loop.sockets, int32(s.fd))
	}
	if !s.closed {
		s.closed, s.rest = true, nil
		_ = unix.Close(s.fd)
	}
}

// onEvent handles the events that epoll reports.
func (s *Socket) onEvent(events uint32) {
	if events&unix.EPOLLOUT != 0 {
		s.writeRest()
	}
	if err := s.ready(); err != nil {
		s.end(err)
	}
}

// Read reads input that has arrived. The error wraps unix.EAGAIN if there is none, and is io.EOF
// at the end. It must be called by the function passed to Watch.
func (s *Socket) Read(b []byte) (int, error) {
	n, err := readNow(s.fd, b)
	switch {
	case err != nil:
		return 0, err
	case n == 0 && len(b) > 0:
		return 0, io.EOF
	default:
		return n, nil
	}
}

// Write writes b. The loop writes later what the kernel does not take at once, up to 8 MiB: more
// than that is an error. The error is net.ErrClosed if the socket is closed.
func (s *Socket) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return 0, net.ErrClosed
	}
	n := 0
	if len(s.rest) == 0 {
		var err error
		if n, err = writeNow(s.fd, b); n == len(b) {
			return n, nil
		}
		if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			return 0, err
		}
	}
	n = max(n, 0)
	if len(s.rest)+len(b)-n > maxUnwritten {
		return n, fmt.Errorf("write: the peer has not read %d bytes", len(s.rest))
	}
	waits := len(s.rest) > 0
	s.rest = append(s.rest, b[n:]...)
	if s.added && !waits {
		return len(b), s.control(unix.EPOLL_CTL_MOD)
	}
	return len(b), nil
}

// writeRest writes what Write has left. An error is found by the next read.
func (s *Socket) writeRest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || len(s.rest) == 0 {
		return
	}
	n, err := writeNow(s.fd, s.rest)
	if err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
		n = len(s.rest)
	}
	if s.rest = s.rest[max(0, n):]; len(s.rest) == 0 {
		s.rest = nil
		_ = s.control(unix.EPOLL_CTL_MOD)
	}
}

// HangUp ends the connection: the next read fails. A socket that is not watched is closed.
func (s *Socket) HangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
	case s.watched:
		_ = unix.Shutdown(s.fd, unix.SHUT_RDWR)
	default:
		s.closed = true
		_ = unix.Close(s.fd)
	}
}
