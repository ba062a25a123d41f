package grpcserver

import (
	"errors"
	"io"
	"math"
	"time"

	"golang.org/x/net/http2"
)

// ending is the state of the end of a connection. It goes through the steps in their order.
type ending struct {
	step endStep
	// due is when the next step begins; zero is never, or when the requests are answered. Force is when the
	// connection is closed with the requests that are under way; zero is never.
	due, force time.Time
	grace      time.Duration
	last       uint32 // the last stream that is answered, from endFinal on
}

// endStep is a step of the end of a connection.
type endStep uint8

const (
	endNone endStep = iota
	// endAnnounced: the client is asked to send no further requests. It may have sent some before.
	endAnnounced
	// endFinal: the client has the ID of the last request that is answered.
	endFinal
	// endStreams: all requests are answered, and streams of messages send their last ones.
	endStreams
)

const (
	// pingWait bounds the wait for a client to have read that the connection ends.
	pingWait = time.Second
	// streamsWait is the time that streams of messages have for their last ones.
	streamsWait = 100 * time.Millisecond
	// lingerTime bounds the wait for a client to close its side. If the socket were closed with unread input,
	// the kernel would discard the last replies.
	lingerTime = time.Second
)

// pingData is in the ping about the end of a connection.
var pingData = [8]byte{'g', 'o', 'i', 'n', 'g', 'a', 'w', 'a'}

// errEnded is the reason to close a connection whose end was announced.
var errEnded = errors.New("the connection has ended")

func (e *ending) init(opts *Options, accepted time.Time) {
	if opts.MaxAge > 0 {
		e.due = accepted.Add(jitter(opts.MaxAge))
	}
	e.grace = opts.MaxAgeGrace
}

// acknowledge handles the answer to a ping.
func (e *ending) acknowledge(data [8]byte) {
	if e.step == endAnnounced && data == pingData {
		e.due = time.Unix(1, 0)
	}
}

// advance takes the steps of the connection's end that are due, and writes the output. The error is the reason
// to close the connection.
func (c *conn) advance() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ending.step > endNone || c.server.draining.Load() || !c.ending.due.IsZero() {
		if err := c.takeSteps(time.Now()); err != nil {
			return err
		}
	}
	return c.write()
}

// takeSteps takes the steps of the connection's end that are due.
func (c *conn) takeSteps(now time.Time) error {
	e := &c.ending
	due := func() bool { return !e.due.IsZero() && !now.Before(e.due) }
	if e.step == endNone && (due() || c.server.draining.Load()) {
		_ = c.framer.WriteGoAway(math.MaxInt32, http2.ErrCodeNo, nil) // to memory
		_ = c.framer.WritePing(false, pingData)
		if e.step, e.due = endAnnounced, now.Add(pingWait); e.grace > 0 {
			e.force = now.Add(e.grace)
		}
	}
	forced := !e.force.IsZero() && !now.Before(e.force)
	if e.step == endAnnounced && (due() || forced) {
		e.step, e.due, e.last = endFinal, time.Time{}, c.lastID
		_ = c.framer.WriteGoAway(e.last, http2.ErrCodeNo, nil)
	}
	if e.step == endFinal && len(c.streams) == c.streaming {
		if e.step, e.due = endStreams, now; c.streaming > 0 {
			e.due = now.Add(streamsWait)
		}
	}
	if forced || e.step == endStreams && due() {
		return errEnded
	}
	return nil
}

// deadline returns when onDeadline must be called; zero is never.
func (c *conn) deadline() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	due := earliest(c.ending.due, c.ending.force)
	if len(c.streams) > c.streaming || c.flow.blocked > 0 {
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

// goAway ends a connection with the reason, as far as HTTP/2 has words for it.
func (c *conn) goAway(reason error) {
	if !c.writeReason(reason) {
		return
	}
	if half, ok := c.socket.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	if c.socket.SetReadDeadline(time.Now().Add(lingerTime)) == nil {
		_, _ = io.Copy(io.Discard, c.net)
	}
}

// writeReason writes the reason why a connection ends. It returns false if the client does not get it.
func (c *conn) writeReason(reason error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.lastID
	if c.ending.step >= endFinal {
		last = c.ending.last
	}
	var code http2.ConnectionError
	switch {
	case errors.Is(reason, errEnded):
		for _, s := range c.streams {
			c.refuse(s, errEnding)
		}
	case errors.As(reason, &code):
		_ = c.framer.WriteGoAway(last, http2.ErrCode(code), nil) // to memory
	case errors.Is(reason, http2.ErrFrameTooLarge):
		_ = c.framer.WriteGoAway(last, http2.ErrCodeFrameSize, nil)
	default:
		return false
	}
	return c.write() == nil
}
