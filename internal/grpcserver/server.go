// Package grpcserver serves methods of gRPC over HTTP/2. The requests of a connection that arrive together
// are answered by one call of their method, so that a request costs a fraction of a goroutine, of a system
// call and of a call to a store.
//
// A connection has one goroutine that reads, and calls unary methods. A method that has to wait goes on in
// another goroutine, so that it delays neither the requests behind it nor those beside it. A connection holds no
// more than the bounds of this package for its client, and a client that does not read delays itself alone.
//
// Formats: https://www.rfc-editor.org/rfc/rfc9113 (HTTP/2) and
// https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
package grpcserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/credentials"

	"github.com/limitgate/limitgate/internal/run"
)

// Call is a request of a unary method.
type Call struct {
	// Message is the request. It is valid until the call is answered.
	Message []byte
	// Reply is where the method appends the message of its answer.
	Reply []byte
	// Err, unless nil, is sent instead of a reply: the status of status.FromError.
	Err error

	stream *stream
	later  bool // a function of Batch.Go answers it
}

// Batch is calls of one unary method that arrived together.
type Batch struct {
	Calls []*Call

	pending []pending
}

// pending is a function that answers calls.
type pending struct {
	calls  []*Call
	answer func()
}

// Go makes the server call answer in a goroutine of its own, when the method has returned and the replies to
// its other calls are sent. The function answers the calls. The slice must not be changed afterwards.
func (b *Batch) Go(calls []*Call, answer func()) {
	for _, call := range calls {
		call.later = true
	}
	b.pending = append(b.pending, pending{calls, answer})
}

// Unary answers the calls of a batch, and does not wait: it leaves those that have to wait to Batch.Go. The
// batch is valid until it returns.
type Unary func(b *Batch)

// Answer answers calls that did not come from a connection, one function of Batch.Go after the other.
func (u Unary) Answer(calls []*Call) {
	b := Batch{Calls: calls}
	u(&b)
	for _, p := range b.pending {
		p.answer()
	}
}

// Streaming answers a request with messages. It runs in a goroutine of its own until ctx ends or it returns;
// send must not be called after that. The error is sent as the status of status.FromError.
type Streaming func(ctx context.Context, message []byte, send func(message []byte) error) error

// Options configure a Server.
type Options struct {
	// Unary and Streaming are the methods, by their paths, such as "/grpc.health.v1.Health/Check".
	Unary     map[string]Unary
	Streaming map[string]Streaming
	// TLS is the configuration of connections; nil serves without encryption.
	TLS *tls.Config
	// MaxConns bounds the connections; 0 is no bound. Others wait to be accepted.
	MaxConns int
	// MaxAge ends connections, so that clients meet servers that are new; 0 is never. MaxAgeGrace bounds the
	// wait for the requests that are under way then; 0 is no bound.
	MaxAge, MaxAgeGrace time.Duration
	// ShutdownTimeout bounds the wait for requests that are under way when Run ends.
	ShutdownTimeout time.Duration
	Log             *slog.Logger
}

// Server serves connections. It is safe for concurrent use.
type Server struct {
	opts  Options
	creds credentials.TransportCredentials // nil without TLS
	room  chan struct{}                    // has a value for each connection; nil without a bound
	// unfinished is the number of bytes of requests that have not arrived whole, of all connections.
	unfinished atomic.Int64
	draining   atomic.Bool

	mu    sync.Mutex // guards conns, and orders draining with new connections
	conns map[*conn]struct{}
}

// New returns a server.
func New(opts Options) *Server {
	s := &Server{opts: opts, conns: map[*conn]struct{}{}}
	if opts.TLS != nil {
		s.creds = credentials.NewTLS(opts.TLS)
	}
	if opts.MaxConns > 0 {
		s.room = make(chan struct{}, opts.MaxConns)
	}
	return s
}

const (
	// The pause after a failure to accept, doubled with each failure. Without a pause, a process without free
	// file descriptors would keep a core busy.
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// Run serves connections of l until ctx ends, and then drains: clients end their requests, for at most
// ShutdownTimeout. It closes l. It must be called once. The error is that of a listener that was closed
// before ctx ended.
func (s *Server) Run(ctx context.Context, l net.Listener) (err error) {
	var conns sync.WaitGroup
	closed := context.AfterFunc(ctx, func() { _ = l.Close() })
	if err = s.accept(ctx, l, &conns); ctx.Err() != nil {
		err = nil
	}
	closed()
	_ = l.Close()
	s.drain()
	silent := time.AfterFunc(pingWait, func() { s.close(func(c *conn) bool { return !c.begun.Load() }) })
	defer silent.Stop()
	late := time.AfterFunc(s.opts.ShutdownTimeout, func() { s.close(func(*conn) bool { return true }) })
	defer late.Stop()
	conns.Wait()
	return err
}

// accept accepts connections until the listener is closed, and runs each in a goroutine.
func (s *Server) accept(ctx context.Context, l net.Listener, conns *sync.WaitGroup) error {
	pause := minAcceptPause
	for s.waitForRoom(ctx) {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = minAcceptPause
			c := s.add(nc)
			conns.Go(func() {
				defer s.leave()
				c.run()
			})
			continue
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return err
		}
		s.leave()
		s.opts.Log.Warn("cannot accept a connection", "error", err, "pause", pause)
		run.Sleep(ctx, pause)
		pause = min(2*pause, maxAcceptPause)
	}
	return ctx.Err()
}

// waitForRoom waits until the server may have another connection, or returns false when ctx ends.
func (s *Server) waitForRoom(ctx context.Context) bool {
	if s.room == nil {
		return ctx.Err() == nil
	}
	select {
	case s.room <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// leave makes room for another connection.
func (s *Server) leave() {
	if s.room != nil {
		<-s.room
	}
}

func (s *Server) add(nc net.Conn) *conn {
	c := newConn(s, nc)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	return c
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// drain makes all connections end when their requests are answered. No connection is added afterwards.
func (s *Server) drain() {
	s.draining.Store(true)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		c.interrupt()
	}
}

// close closes some of the connections.
func (s *Server) close(which func(c *conn) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		if which(c) {
			_ = c.socket.Close()
		}
	}
}

// protect calls a function. A panic is the error of the calls.
func (s *Server) protect(calls []*Call, do func()) {
	defer func() {
		if p := recover(); p != nil {
			s.panicked(p)
			for _, call := range calls {
				call.Err = errInternal
			}
		}
	}()
	do()
}

// panicked logs a panic.
func (s *Server) panicked(value any) {
	s.opts.Log.Error("request panicked", "panic", value, "stack", string(debug.Stack()))
}
