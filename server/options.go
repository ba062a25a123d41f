package server

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"
)

// The largest bounds that make sense: a larger value is a mistake.
const (
	maxMaxConns = 1 << 20
	maxMaxArgs  = 1 << 20
	maxMaxBytes = 512 << 20 // Redis' own proto-max-bulk-len
	// With less, one connection with a large reply could exceed the bound.
	minMaxBuffered = 1 << 20
)

// Bounds for a client that has not authenticated: enough for AUTH and HELLO. The figures
// are those of Redis since CVE-2021-32675.
const (
	unauthenticatedArgs = 10
	unauthenticatedBulk = 16 << 10
)

// Options bounds the cost of connections. A zero field stands for its default, except
// IdleTimeout, MaxAge and KeepAlive.
type Options struct {
	// MaxConns is the maximum number of open connections, over all listeners of a Server.
	// Default 10,000.
	MaxConns int
	// IdleTimeout closes a connection that has sent nothing for this long. Zero, the
	// default, means never, as in Redis.
	IdleTimeout time.Duration
	// MaxAge closes a connection that is older, plus a random part of up to a tenth, so
	// that clients spread over the servers that exist now and do not reconnect all at
	// once. The connection is closed when it has no unanswered input. Zero, the default,
	// means never.
	MaxAge time.Duration
	// KeepAlive is the idle time after which the kernel probes whether the client is
	// still there. Zero means no probes. Default 300 s, as in Redis.
	KeepAlive time.Duration
	// RequestTimeout is the maximum time for the rest of a half-sent command, and for a
	// TLS handshake. Default 30 s.
	RequestTimeout time.Duration
	// WriteTimeout is the maximum time for a client to accept the replies of one batch.
	// Default 10 s.
	WriteTimeout time.Duration
	// MaxBulk is the maximum length of a word of a command in bytes. Default 64 KiB.
	MaxBulk int
	// MaxArgs is the maximum number of words of a command. Default 1,024.
	MaxArgs int
	// MaxRequest is the maximum length of a command in bytes, framing included. It is at
	// least MaxBulk. While the command arrives, its connection holds up to twice as much.
	// Default 1 MiB.
	MaxRequest int
	// MaxInline is the maximum length of a line in bytes: of an inline command, and of a
	// length. Default 64 KiB.
	MaxInline int
	// MaxBuffered is the maximum number of bytes that all connections together hold of
	// replies that clients have not read, of incomplete commands longer than 16 KiB, and
	// of sessions' state. Beyond it the connections that hold most are closed. It is at
	// least twice MaxRequest. With a GOGC of 400 the process may grow by five times as
	// much. Default 64 MiB.
	MaxBuffered int
	// RequireAuth sets stricter bounds until a client has authenticated: 10 words, 16 KiB a
	// word or line, and RequestTimeout in all.
	RequireAuth bool
	// Flush is called after AsyncSession.Start, once for sessions that started together,
	// by several goroutines at once. Nil means no call.
	Flush func()
	// Loops serve the plain TCP connections. They may serve several servers, and must run
	// until each has returned. Nil means loops of its own for each listener.
	Loops *Loops
	// Log receives what an operator should know. Event loops write to it, so writing must not
	// wait. Nil means slog.Default.
	Log *slog.Logger
	// ShutdownTimeout is the maximum time that a drain waits for batches that are being
	// answered. Default 10 s.
	ShutdownTimeout time.Duration
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		MaxConns:        10_000,
		KeepAlive:       300 * time.Second,
		RequestTimeout:  30 * time.Second,
		WriteTimeout:    10 * time.Second,
		MaxBulk:         64 << 10,
		MaxArgs:         1024,
		MaxRequest:      1 << 20,
		MaxInline:       64 << 10,
		MaxBuffered:     64 << 20,
		Log:             slog.Default(),
		ShutdownTimeout: 10 * time.Second,
	}
}

// Validate returns an error that lists every field out of bounds.
func (o Options) Validate() error {
	o = o.withDefaults()
	err := errors.Join(
		checkRange("MaxConns", o.MaxConns, 1, maxMaxConns),
		checkRange("MaxArgs", o.MaxArgs, 1, maxMaxArgs),
		checkRange("MaxBulk", o.MaxBulk, 1, maxMaxBytes),
		checkRange("MaxRequest", o.MaxRequest, o.MaxBulk, maxMaxBytes),
		checkRange("MaxInline", o.MaxInline, 1, maxMaxBytes),
		checkRange("MaxBuffered", o.MaxBuffered, max(minMaxBuffered, 2*o.MaxRequest), math.MaxInt),
		checkTime("IdleTimeout", o.IdleTimeout),
		checkTime("MaxAge", o.MaxAge),
		checkTime("KeepAlive", o.KeepAlive),
		checkTime("RequestTimeout", o.RequestTimeout),
		checkTime("WriteTimeout", o.WriteTimeout),
		checkTime("ShutdownTimeout", o.ShutdownTimeout),
	)
	if err != nil {
		return fmt.Errorf("check server options: %w", err)
	}
	return nil
}

func checkRange(name string, value, least, most int) error {
	if value < least || value > most {
		return fmt.Errorf("%s must be between %d and %d", name, least, most)
	}
	return nil
}

func checkTime(name string, value time.Duration) error {
	if value < 0 {
		return fmt.Errorf("%s must not be negative", name)
	}
	return nil
}

func (o Options) withDefaults() Options {
	d := DefaultOptions()
	set := func(field *int, value int) {
		if *field == 0 {
			*field = value
		}
	}
	setTime := func(field *time.Duration, value time.Duration) {
		if *field == 0 {
			*field = value
		}
	}
	o.Log = cmp.Or(o.Log, d.Log)
	set(&o.MaxConns, d.MaxConns)
	set(&o.MaxBulk, d.MaxBulk)
	set(&o.MaxArgs, d.MaxArgs)
	set(&o.MaxRequest, max(d.MaxRequest, o.MaxBulk))
	set(&o.MaxInline, d.MaxInline)
	set(&o.MaxBuffered, max(d.MaxBuffered, 4*o.MaxRequest))
	setTime(&o.RequestTimeout, d.RequestTimeout)
	setTime(&o.WriteTimeout, d.WriteTimeout)
	setTime(&o.ShutdownTimeout, d.ShutdownTimeout)
	return o
}
