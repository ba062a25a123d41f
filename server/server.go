package server

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/logthrottle"
)

// killGrace is the maximum time that Run waits for sessions whose connection was killed.
// Run does not wait longer for a session that does not return.
const killGrace = time.Second

// Server runs connections. It is safe for concurrent use.
type Server struct {
	opts                          Options
	bounds, unauthenticatedBounds parserBounds
	newSession                    func(Peer) Session
	lastID                        atomic.Int64
	count                         counters
	ledger                        ledger
	httpReported, tlsReported     logthrottle.Throttle
}

// New returns a server that creates a session for each connection. The options must be
// valid. newSession is called by the connection's goroutine, and thus concurrently for
// several connections.
func New(opts Options, newSession func(Peer) Session) *Server {
	opts = opts.withDefaults()
	lim := parserBounds{args: opts.MaxArgs, bulk: opts.MaxBulk, request: opts.MaxRequest, inline: opts.MaxInline}
	s := &Server{opts: opts, bounds: lim, unauthenticatedBounds: lim, newSession: newSession}
	s.httpReported.Period, s.tlsReported.Period = reportPause, reportPause
	s.unauthenticatedBounds.unauthenticated = true
	s.unauthenticatedBounds.inline = min(opts.MaxInline, unauthenticatedBulk)
	s.ledger = ledger{most: int64(opts.MaxBuffered), open: map[*account]struct{}{}}
	return s
}

// Run accepts connections on ln until ctx ends. Then it closes ln, closes idle
// connections, lets the others finish the batch they are answering, and returns nil when
// all their goroutines have ended. Connections that are not done within ShutdownTimeout
// are killed, and the error has their number. Run also returns, after the same drain, if
// ln is closed elsewhere. It may be called once for each of several listeners, at the
// same time; wrap ln for TLS.
func (s *Server) Run(ctx context.Context, ln net.Listener) error {
	l := newListener(ctx, s, ln)
	defer l.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.serve()
	}()
	var broken error
	select {
	case <-ctx.Done():
	case err := <-l.broken:
		broken = fmt.Errorf("accept connections: %w", err)
	}
	l.drain()
	if err := l.finish(ended); err != nil {
		return err
	}
	return broken
}

// finish waits until all connections have ended, and kills the rest after
// ShutdownTimeout.
func (l *listener) finish(ended <-chan struct{}) error {
	timer := time.NewTimer(l.server.opts.ShutdownTimeout)
	defer timer.Stop()
	select {
	case <-ended:
		return nil
	case <-timer.C:
	}
	left := l.killAll()
	timer.Reset(killGrace)
	select {
	case <-ended:
	case <-timer.C:
	}
	return fmt.Errorf("drain connections: %d killed after %v", left, l.server.opts.ShutdownTimeout)
}
