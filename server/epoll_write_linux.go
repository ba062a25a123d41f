package server

import (
	"bytes"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// send writes the reply at the end of a round.
func (c *epollConn) send() {
	if c.state != stateReplying {
		return
	}
	c.rest = c.batch.reply
	c.write()
}

// write writes as much as the socket takes, and continues when all is written.
func (c *epollConn) write() {
	n, err := 0, error(nil)
	if len(c.rest) > 0 {
		n, err = writeNow(c.fd, c.rest)
	}
	switch {
	case err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR):
		c.close()
	case max(0, n) == len(c.rest):
		c.written()
	default:
		c.rest = c.rest[max(0, n):]
		c.block()
	}
}

// block waits for room in the socket. The client has WriteTimeout to make it.
func (c *epollConn) block() {
	if c.state == stateWriting {
		return
	}
	c.state = stateWriting
	if b := c.batch; b != nil && len(b.left()) == 0 && len(c.rest) < cap(b.reply)/2 {
		// The rest of a small reply must not keep the memory of a large one.
		c.rest = bytes.Clone(c.rest)
		c.endBatch()
	}
	c.settle()
	c.watch(writeEvents)
	c.loop.timers.set(c, time.Now().Add(c.listener.server.opts.WriteTimeout))
}

// written continues after a reply is written.
func (c *epollConn) written() {
	c.rest = nil
	if c.state == stateWriting {
		c.loop.timers.set(c, time.Time{})
	}
	c.state = stateReading
	if c.counted != 0 {
		c.settle()
	}
	if b := c.batch; b != nil {
		b.reply = b.reply[:0]
		if len(b.left()) > 0 && !c.quit {
			c.answer()
			return
		}
		c.endBatch()
	}
	switch {
	case c.quit:
		c.hangUp()
	case !c.maxAgeAt.IsZero() && c.retired(time.Now()):
		c.closeFor(errRetired)
	default:
		c.resume()
	}
}

func (c *epollConn) endBatch() {
	c.batch.release()
	c.batch = nil
}

// resume continues with the input.
func (c *epollConn) resume() {
	c.watch(readEvents)
	c.serve()
}
