package adminserver

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// bounds bound the resources of an admin address that clients can use.
type bounds struct {
	// conns is the maximum number of connections. Probes and scrapers need a few; the
	// descriptors of the process are for clients.
	conns int
	// read bounds the time in which a request arrives, write the time from then on in
	// which the reply is written, and idle the time that a connection waits for the next
	// request.
	read, write, idle time.Duration
}

var defaultBounds = bounds{conns: 64, read: 2 * time.Second, write: 10 * time.Second, idle: 5 * time.Second}

// maxHeader bounds the headers of a request, in bytes.
const maxHeader = 16 << 10

// Serve serves handler until ctx ends, and then drains for at most grace. It refuses requests with a
// body.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, grace time.Duration) error {
	return ServeBodies(ctx, listener, withoutBody(handler), grace)
}

// ServeBodies does what Serve does for a handler that reads the bodies of requests, and bounds them.
func ServeBodies(ctx context.Context, listener net.Listener, handler http.Handler, grace time.Duration) error {
	s := newServer(handler, defaultBounds)
	done := make(chan struct{})
	defer context.AfterFunc(ctx, func() {
		defer close(done)
		drained, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if s.Shutdown(drained) != nil {
			_ = s.Close()
		}
	})()
	if err := s.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve admin: %w", err)
	}
	<-done
	return nil
}

// newServer returns a server that enforces bounds.
func newServer(handler http.Handler, b bounds) *http.Server {
	conns := newConns(b.conns)
	return &http.Server{
		Handler: handler, ConnState: conns.changed, MaxHeaderBytes: maxHeader,
		// Each probe of the port without a request would be a line.
		ErrorLog: slog.NewLogLogger(slog.Default().Handler(), slog.LevelDebug), ReadTimeout: b.read, WriteTimeout: b.write, IdleTimeout: b.idle,
	}
}

// withoutBody refuses requests with a body, because no handler reads one.
func withoutBody(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			w.Header().Set("Connection", "close")
			http.Error(w, "no body belongs here: checks over HTTP are sent to the address of --http, such as 127.0.0.1:8080 (it is off by default)", http.StatusBadRequest)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// TakingLong lets a handler run for longer than the read timeout of a request, the end of
// which would cancel the request's context. The profile handlers extend the write timeout
// themselves.
func TakingLong(handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		handler(w, r)
	}
}
