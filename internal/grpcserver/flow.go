package grpcserver

import (
	"math"

	"golang.org/x/net/http2"
)

// initialWindow is the number of bytes that each side takes at first.
const initialWindow = 1<<16 - 1

// flow is how much data each side may send.
type flow struct {
	// window is how many bytes of messages the client takes, of all streams, and initial how many of a new
	// stream.
	window, initial int64
	// blocked is the number of bytes of replies that wait for room.
	blocked int64
	// unreturned is the number of bytes that have arrived, and that the client does not yet know to be
	// taken.
	unreturned int64
}

func newFlow() flow { return flow{window: initialWindow, initial: initialWindow} }

// maxBlocked bounds the replies that wait for room. Requests that arrive while more wait are refused.
const maxBlocked = 1 << 20

// returnWindow lets the client send as many bytes again as have arrived, in parts of half a window.
func (c *conn) returnWindow(n int64) error {
	if c.flow.unreturned += n; c.flow.unreturned < receiveWindow/2 {
		return nil
	}
	n, c.flow.unreturned = c.flow.unreturned, 0
	return c.framer.WriteWindowUpdate(0, uint32(n))
}

// onWindowUpdate lets replies go on.
func (c *conn) onWindowUpdate(f *http2.WindowUpdateFrame) error {
	if f.StreamID == 0 {
		if c.flow.window += int64(f.Increment); c.flow.window > math.MaxInt32 {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		c.resume()
		return nil
	}
	if f.StreamID > c.lastID {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	s := c.streams[f.StreamID]
	if s == nil {
		return nil
	}
	if s.window += int64(f.Increment); s.window > math.MaxInt32 {
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	}
	if len(s.rest) > 0 {
		c.writeRest(s)
	}
	return nil
}

// setInitialWindow changes the windows of all streams.
func (c *conn) setInitialWindow(n int64) error {
	change := n - c.flow.initial
	c.flow.initial = n
	for _, s := range c.streams {
		if s.window += change; s.window > math.MaxInt32 {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
	}
	c.resume()
	return nil
}

// resume writes what has room now.
func (c *conn) resume() {
	if c.flow.blocked == 0 {
		return
	}
	for _, s := range c.streams {
		if c.flow.window <= 0 {
			return
		}
		if len(s.rest) > 0 {
			c.writeRest(s)
		}
	}
}
