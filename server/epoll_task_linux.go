package server

import "context"

// taskResult is the session's result for a batch or a part of it.
type taskResult struct {
	reply  []byte
	served int
	quit   bool
	held   int
	ok     bool // the session did not panic
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
