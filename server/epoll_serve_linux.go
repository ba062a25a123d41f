package server

import (
	"bytes"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// serve answers the complete commands, until one has to wait.
func (c *epollConn) serve() {
	for c.state == stateReading && c.in.pending() {
		b := takeBatch()
		if c.async != nil {
			b.most = asyncCommands
		}
		if c.fast != nil && !c.authentication.missing() && !c.answerFast(b) {
			b.release()
			c.close()
			break
		}
		err := c.in.collect(b, c.bounds())
		if errors.Is(err, errHTTPRequest) {
			b.drop()
		}
		if b.empty() && len(b.reply) > 0 {
			c.batch, c.since, c.arrived = b, time.Time{}, time.Time{}
			c.reply()
			break
		}
		if b.empty() {
			b.release()
			// The rest of the command has yet to arrive: this wait is the client's.
			c.arrived = time.Time{}
			if err != nil {
				c.closeFor(err)
			}
			break
		}
		c.since = time.Time{}
		c.batch = b
		if len(b.reply) > 0 && c.nextIsLong() {
			c.reply()
			break
		}
		c.answer()
	}
	switch {
	case c.state != stateReading:
	case c.listener.draining.Load():
		c.closeFor(errDraining)
	default:
		c.pause()
	}
}

// answerFast answers the first commands of the input that the session can answer at once. It
// returns false if the session has panicked.
func (c *epollConn) answerFast(b *batch) (ok bool) {
	defer c.survive("fast", &ok)
	if !c.fast.BeginFast() {
		return true
	}
	var last []byte
	used := 0 // the most words of a command
	defer func() {
		clear(b.words[:used])
		b.words = b.words[:0]
	}()
	for lim := c.bounds(); b.most > 0 && c.in.parse(lim) && len(c.in.parser.words) > 0; b.most-- {
		b.words = c.in.command(b.words[:0])
		used = max(used, len(b.words))
		reply, ok := c.fast.Fast(b.words, b.reply)
		if !ok {
			break
		}
		b.reply, last = reply, b.words[0]
		c.in.skip()
	}
	c.fast.EndFast(last)
	return true
}

// answer calls the session for the unanswered rest of the batch.
func (c *epollConn) answer() {
	c.seq++
	reply, begun, answered, ok := c.start()
	c.arrived = time.Time{}
	switch {
	case !ok:
		c.close()
	case answered:
		c.finished(reply)
	case begun:
		c.state = stateWaiting
		c.loop.hasBegun(c.listener.server)
		c.loop.timers.set(c, c.async.Deadline())
	default:
		c.dispatch()
	}
}

// start calls AsyncSession.Start, if the session has it.
func (c *epollConn) start() (reply []byte, begun, answered, ok bool) {
	defer c.survive("begin", &ok)
	if c.async == nil {
		return nil, false, false, true
	}
	reply, begun, answered = c.async.Start(c.arrived, c.batch.left(), c.batch.reply, c.onDone, c.seq)
	return reply, begun, answered, true
}

// end finishes the commands that Start has begun.
func (c *epollConn) end() {
	if c.state != stateWaiting {
		return
	}
	c.seq++
	c.loop.timers.set(c, time.Time{})
	reply, finished, ok := c.finish()
	switch {
	case !ok:
		c.close()
	case finished:
		c.finished(reply)
	default:
		c.offload(c.ctx, &c.listener.resuming, c.runResume)
	}
}

func (c *epollConn) finish() (reply []byte, finished, ok bool) {
	defer c.survive("end", &ok)
	reply, finished = c.async.Finish()
	return reply, finished, true
}

// finished takes the reply to the whole rest of the batch.
func (c *epollConn) finished(reply []byte) {
	if c.closeWhenDone {
		c.close()
		return
	}
	c.batch.reply, c.batch.served = reply, len(c.batch.cmds)
	c.reply()
}

// reply schedules the reply to be sent when the round ends.
func (c *epollConn) reply() {
	c.state = stateReplying
	c.bulk = c.bulk || len(c.batch.reply) >= mediumBuffer
	if c.bulk {
		c.settle()
		c.loop.bulk.unsent = append(c.loop.bulk.unsent, c)
		return
	}
	c.loop.unsent = append(c.loop.unsent, c)
}

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
