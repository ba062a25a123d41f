package grpcserver

import (
	"errors"
	"io"
	"math"
	"time"

	"golang.org/x/net/http2"
)

// ending is how far a connection is with its end, which has two steps: the client learns that it should send
// no further requests, and then which of its requests have arrived before it knew.
type ending struct {
	step endStep
	// due is when the next step begins: zero is never. Force is when the connection is closed with the requests
	// that are under way; zero is never.
	due, force time.Time
	grace      time.Duration
}

type endStep uint8

const (
	endNone      endStep = iota
	endAnnounced         // the client may have sent requests that have not arrived
	endFinal             // later requests are not answered
)

const (
	// pingWait bounds the wait for a client to have read that the connection ends.
	pingWait = time.Second
	// watchWait is the time that streams of messages have for their last ones.
	watchWait = 100 * time.Millisecond
	// lingerTime bounds the wait for a client to close its side. If the socket were closed with unread input,
	// the kernel would discard the last replies.
	lingerTime = time.Second
)

// pingData is in the ping about the end of a connection.
var pingData = [8]byte{'g', 'o', 'i', 'n', 'g', 'a', 'w', 'a'}

// errEnded is the reason to close a connection whose end was announced.
var errEnded = errors.New("the connection has ended")

func (e *ending) init(opts *Options, began time.Time) {
	if opts.MaxAge > 0 {
		e.due = began.Add(jitter(opts.MaxAge))
	}
	e.grace = opts.MaxAgeGrace
}

// final reports whether later requests are not answered.
func (e *ending) final() bool { return e.step == endFinal }

// acknowledge handles the answer to a ping.
func (e *ending) acknowledge(data [8]byte) {
	if e.step == endAnnounced && data == pingData {
		e.due = time.Unix(1, 0)
	}
}

// advance takes the steps of the connection's end that are due. The error is the reason to close it.
func (c *conn) advance() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, now := &c.ending, time.Now()
	due := !e.due.IsZero() && !now.Before(e.due)
	if e.step == endNone && (due || c.server.draining.Load()) {
		_ = c.framer.WriteGoAway(math.MaxInt32, http2.ErrCodeNo, nil) // to memory
		_ = c.framer.WritePing(false, pingData)
		if e.step, due = endAnnounced, false; e.grace > 0 {
			e.force = now.Add(e.grace)
		}
		e.due = now.Add(pingWait)
	}
	if e.step == endAnnounced && due {
		if e.step, e.due = endFinal, (time.Time{}); c.watching > 0 {
			e.due = now.Add(watchWait)
		}
		_ = c.framer.WriteGoAway(c.lastID, http2.ErrCodeNo, nil)
	}
	if err := c.write(); err != nil {
		return err
	}
	forced := !e.force.IsZero() && !now.Before(e.force)
	idle := len(c.streams) == c.watching && (c.watching == 0 || !now.Before(e.due))
	if forced || e.step == endFinal && idle {
		return errEnded
	}
	return nil
}

// deadline returns when onDeadline must be called; zero is never.
func (c *conn) deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := earliest(c.ending.due, c.ending.force)
	if len(c.streams) > c.watching || c.flow.blocked > 0 {
		for _, s := range c.streams {
			if s.waits() {
				due = earliest(due, s.until)
			}
		}
	}
	return due
}

// waits reports whether the server waits for the client, which must be for a bounded time.
func (s *stream) waits() bool { return !s.ended || len(s.rest) > 0 }

// earliest returns the earlier of two times, of which zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// onDeadline ends the requests whose clients are late, and takes the steps of the connection's end.
func (c *conn) onDeadline() error {
	c.mu.Lock()
	now := time.Now()
	for _, s := range c.streams {
		switch {
		case !s.waits() || now.Before(s.until):
		case len(s.rest) > 0:
			c.reset(s.id, http2.ErrCodeCancel)
		default:
			c.refuse(s, errTime)
		}
	}
	c.mu.Unlock()
	return c.advance()
}

// goAway ends a connection with the reason, as far as the client can know it.
func (c *conn) goAway(reason error) {
	c.mu.Lock()
	var code http2.ConnectionError
	switch {
	case errors.Is(reason, errEnded):
		for _, s := range c.streams {
			c.refuse(s, errDraining)
		}
	case errors.As(reason, &code):
		_ = c.framer.WriteGoAway(c.lastID, http2.ErrCode(code), nil) // to memory
	case errors.Is(reason, http2.ErrFrameTooLarge):
		_ = c.framer.WriteGoAway(c.lastID, http2.ErrCodeFrameSize, nil)
	default:
		c.mu.Unlock()
		return
	}
	err := c.write()
	c.mu.Unlock()
	if half, ok := c.net.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	if err == nil && c.socket.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, c.net)
	}
}
