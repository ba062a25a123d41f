// Package grpcserver serves methods of gRPC over HTTP/2. The requests of a connection that arrive together
// are answered together, by one call of their method, so that a request costs a fraction of a goroutine, a
// system call and a call to a store.
//
// A connection is served by one goroutine, which reads no further input while a method runs: methods must
// be quick. Nothing that a client sends makes a connection hold more than the bounds of this package, and a
// client that does not read delays itself alone.
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
	// Message is the request. It is valid until the method returns.
	Message []byte
	// Reply is where the method appends the message of its answer.
	Reply []byte
	// Err, unless nil, is sent instead of a reply: the status of status.FromError.
	Err error
}

// Unary answers calls of a method that arrived together. All or some of them arrived at since; zero
// means now.
type Unary func(since time.Time, calls []*Call)

// Stream answers a request of a method with a stream of messages. It runs in a goroutine of its own until
// ctx ends or it returns; send must not be called after that. The error is sent as the status of
// status.FromError.
type Stream func(ctx context.Context, message []byte, send func(message []byte) error) error

// Options configure a Server.
type Options struct {
	// Unary and Streams are the methods, by their paths, such as "/grpc.health.v1.Health/Check".
	Unary   map[string]Unary
	Streams map[string]Stream
	// TLS is the configuration of connections; nil serves without encryption.
	TLS *tls.Config
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
	// unfinished is the number of bytes of requests that have not arrived whole, of all connections.
	unfinished atomic.Int64

	draining atomic.Bool

	mu    sync.Mutex // guards conns, and orders draining with new connections
	conns map[*conn]struct{}
}

// New returns a server.
func New(opts Options) *Server {
	s := &Server{opts: opts, conns: map[*conn]struct{}{}}
	if opts.TLS != nil {
		s.creds = credentials.NewTLS(opts.TLS)
	}
	return s
}

const (
	// The pause after a failure to accept, doubled with each failure. Without a pause, running out of file
	// descriptors would keep a core busy.
	minAcceptPause = 5 * time.Millisecond
	maxAcceptPause = time.Second
)

// Run serves connections of l until ctx ends, and then drains: clients end their requests, for at most
// ShutdownTimeout. It closes l. It must be called once.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	var conns sync.WaitGroup
	accepting := make(chan error, 1)
	go func() { accepting <- s.accept(ctx, l, &conns) }()
	var failed error
	select {
	case failed = <-accepting:
	case <-ctx.Done():
		_ = l.Close()
		<-accepting
	}
	s.drain()
	late := time.AfterFunc(s.opts.ShutdownTimeout, s.closeAll)
	conns.Wait()
	late.Stop()
	return failed
}

// accept accepts connections until the listener is closed, and runs each in a goroutine.
func (s *Server) accept(ctx context.Context, l net.Listener, conns *sync.WaitGroup) error {
	pause := minAcceptPause
	for {
		nc, err := l.Accept()
		switch {
		case err == nil:
			pause = minAcceptPause
			if c := s.add(nc); c != nil {
				conns.Go(c.run)
			}
		case errors.Is(err, net.ErrClosed) || ctx.Err() != nil:
			return err
		default:
			s.opts.Log.Warn("cannot accept a connection", "error", err, "pause", pause)
			run.Sleep(ctx, pause)
			pause = min(2*pause, maxAcceptPause)
		}
	}
}

// add makes a connection, or returns nil while the server drains.
func (s *Server) add(nc net.Conn) *conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.draining.Load() {
		_ = nc.Close()
		return nil
	}
	c := newConn(s, nc)
	s.conns[c] = struct{}{}
	return c
}

func (s *Server) remove(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
}

// drain makes all connections end when their requests are answered.
func (s *Server) drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	for c := range s.conns {
		c.interrupt()
	}
}

// closeAll closes all connections.
func (s *Server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.socket.Close()
	}
}

// panicked logs a panic.
func (s *Server) panicked(value any) {
	s.opts.Log.Error("request panicked", "panic", value, "stack", string(debug.Stack()))
}
