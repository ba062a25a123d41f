package server

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"
)

// killGrace is how long Run waits for sessions to notice that their connection
// was killed. One that does not is left behind.
const killGrace = time.Second

// Server runs connections. Any number of goroutines may use it.
type Server struct {
	opts                Options
	bounds, guestBounds parserBounds
	newSession          func(Peer) Session
	lastID              atomic.Int64
	count               counters
	ledger              ledger
}

// New returns a server that answers each connection with a session of its own.
// The options must be valid. newSession is called on the connection's goroutine,
// so for several connections at once.
func New(opts Options, newSession func(Peer) Session) *Server {
	opts = opts.withDefaults()
	lim := parserBounds{args: opts.MaxArgs, bulk: opts.MaxBulk, request: opts.MaxRequest, inline: opts.MaxInline}
	s := &Server{opts: opts, bounds: lim, guestBounds: lim, newSession: newSession}
	s.guestBounds.unauthenticated = true
	s.ledger = ledger{most: int64(opts.MaxBuffered), open: map[*account]struct{}{}}
	return s
}

// Run accepts connections on ln until ctx ends. Then it closes ln, closes idle
// connections, lets the others finish the batch they are answering, and returns
// nil when all their goroutines have ended. Those not done within
// ShutdownTimeout are killed, and the error says how many. Run also returns,
// after the same drain, if somebody else closes ln. It may be called once for
// each of several listeners, at the same time; wrap ln for TLS.
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

// finish waits until all connections have ended, and kills what is left when time is up.
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
