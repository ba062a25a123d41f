package server

import (
	"context"
	"errors"
	"time"
)

// taskResult is the session's result for a batch or a part of it.
type taskResult struct {
	reply  []byte
	served int
	quit   bool
	held   int
	ok     bool // the session did not panic
}

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

// dispatch serves the commands that the session does not start asynchronously: in the
// loop, or in the task queue for the weight of the first one.
func (c *epollConn) dispatch() {
	w, ok := c.weigh()
	switch {
	case !ok:
		c.close()
	case w == light:
		c.result = c.runServe(c.ctx)
		c.onServed()
	case w == waits:
		c.offload(c.ctx, &c.listener.waiting, c.runServe)
	default:
		var ctx context.Context
		ctx, c.endLong = context.WithCancel(c.ctx)
		if c.halfClosed {
			c.endLong() // the task ends soon and need not wait in the queue
			c.offload(ctx, &c.listener.waiting, c.runLong)
			return
		}
		c.offload(ctx, &c.listener.long, c.runLong)
	}
}

func (c *epollConn) weigh() (w weight, ok bool) {
	defer c.survive("weigh", &ok)
	return weigh(c.session, c.batch.left()[0]), true
}

// offload runs in a task queue a call that may block.
func (c *epollConn) offload(ctx context.Context, l *taskQueue, ask func(context.Context) taskResult) {
	c.state = stateServing
	if len(c.in.buf) > mediumBuffer || len(c.batch.reply) > mediumBuffer {
		c.settle() // the task may queue for long
	}
	c.queue, c.taskCtx, c.ask = l, ctx, ask
	l.add(&c.task)
}

// runTask runs in the task queue's goroutine.
func (c *epollConn) runTask() {
	c.result = c.ask(c.taskCtx)
	c.loop.post(c, 0, (*epollConn).onServed)
}

func (c *epollConn) runServe(ctx context.Context) (o taskResult) {
	defer c.survive("serve", &o.ok)
	o.reply, o.served, o.quit = c.session.Serve(ctx, c.batch.left(), c.batch.reply)
	o.held = c.session.Held()
	o.ok = o.served > 0 || o.quit
	return o
}

func (c *epollConn) runLong(ctx context.Context) (o taskResult) {
	defer c.survive("serve", &o.ok)
	o.reply, o.served, o.quit = c.batch.serveLong(func(out []byte) ([]byte, int, bool) {
		return c.session.Serve(ctx, c.batch.left(), out)
	})
	o.held = c.session.Held()
	o.ok = o.served > 0 || o.quit
	return o
}

func (c *epollConn) runResume(context.Context) (o taskResult) {
	defer c.survive("serve", &o.ok)
	o.reply, o.served, o.ok = c.async.FinishBlocking(), len(c.batch.left()), true
	o.held = c.session.Held()
	return o
}

// onServed continues when the session has served a part of the batch.
func (c *epollConn) onServed() {
	o := c.result
	c.result, c.queue, c.ask, c.taskCtx = taskResult{}, nil, nil, nil
	if c.endLong != nil {
		c.endLong()
		c.endLong = nil
	}
	c.state = stateReading
	if !o.ok || c.closeWhenDone {
		c.close()
		return
	}
	b := c.batch
	b.reply, c.quit = o.reply, o.quit
	b.served += o.served
	if kept := int64(o.held); kept != c.kept {
		c.kept = kept
		c.settle()
	}
	if c.quit || len(b.left()) == 0 || len(b.reply) >= largeReply || len(b.reply) > 0 && c.nextIsLong() {
		c.reply()
		return
	}
	c.answer()
}

// nextIsLong reports whether the replies should be sent before the next command of the
// batch is served.
func (c *epollConn) nextIsLong() bool {
	w, ok := c.weigh()
	return !ok || w == long
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
