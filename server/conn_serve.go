package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"
)

// run answers the client's batches until the connection ends.
func (c *conn) run() {
	defer c.end()
	if err := c.open(); err != nil {
		c.closeFor(err)
		return
	}
	for {
		b, err := c.await()
		if err != nil {
			c.closeFor(err)
			return
		}
		if !c.answer(b) {
			return // the client has been told; what it sent since is not run
		}
	}
}

// answer has the session answer the batch and sends the replies: in one write, unless
// they are large. It returns whether the connection goes on.
func (c *conn) answer(b *batch) (more bool) {
	for len(b.left()) > 0 {
		quit, err := c.serve(b)
		if err != nil {
			// b is not released: the session may have left it in any state.
			return false
		}
		if more := len(b.left()) > 0; more && !quit && len(b.reply) < largeReply && (len(b.reply) == 0 || !c.nextIsLong(b)) {
			continue
		}
		if c.write(b.reply) != nil {
			b.release()
			return false
		}
		b.reply = b.reply[:0]
		if quit {
			b.release()
			c.hangUp()
			return false
		}
	}
	b.release()
	return true
}

// serve has the session serve a part of the batch. A long command waits for its
// turn.
func (c *conn) serve(b *batch) (quit bool, err error) {
	if !c.nextIsLong(b) {
		return c.call(b, false)
	}
	done := make(chan struct{})
	turn := &task{run: func() {
		defer close(done)
		// The listener's context ends before those of its connections, which end one by one.
		if err = errors.Join(c.listener.ctx.Err(), c.ctx.Err()); err == nil {
			quit, err = c.call(b, true)
		}
	}}
	c.listener.long.add(turn)
	select {
	case <-done:
		return quit, err
	case <-c.ctx.Done():
	}
	if c.listener.long.withdraw(turn) {
		return false, c.ctx.Err()
	}
	<-done
	return quit, err
}

func (c *conn) nextIsLong(b *batch) (yes bool) {
	var err error // of a session that panics: it will do so again
	defer c.survive("weigh", &err)
	return weigh(c.session, b.left()[0]) == long
}

func (c *conn) call(b *batch, long bool) (quit bool, err error) {
	defer c.survive("serve", &err)
	serve := func(out []byte) ([]byte, int, bool) { return c.session.Serve(c.ctx, b.left(), out) }
	var reply []byte
	var served int
	if long {
		reply, served, quit = b.serveLong(serve)
	} else {
		reply, served, quit = serve(b.reply)
	}
	if served == 0 && !quit {
		return false, errPanic
	}
	b.reply = reply
	b.served += served
	c.kept = int64(c.session.Held())
	return quit, nil
}

// open runs the TLS handshake, if there is one, and makes the session. It is
// done here, not on accepting, so that one client cannot hold up another.
func (c *conn) open() (err error) {
	if tls, ok := c.Conn.(interface{ HandshakeContext(context.Context) error }); ok {
		c.armed = time.Now().Add(c.server.opts.RequestTimeout)
		if err := c.SetDeadline(c.armed); err != nil {
			return err
		}
		if c.listener.draining.Load() {
			return errInterrupted
		}
		if err := tls.HandshakeContext(c.ctx); isTimeout(err) {
			return errTimeout
		} else if err != nil {
			return err
		}
	}
	defer c.survive("open", &err)
	c.session = c.server.newSession(c.peer)
	return nil
}

func (c *conn) closeSession() {
	var err error
	defer c.survive("close", &err)
	c.session.Close()
}

// survive turns a panic of the session into an error. It logs where, and what
// only if the runtime worded it: other panic values may hold what a client sent.
func (c *conn) survive(doing string, err *error) {
	value := recover()
	if value == nil {
		return
	}
	*err = errPanic
	c.server.panicked(doing, c.peer.ID, value)
}

// panicked counts and logs the panic of a session.
func (s *Server) panicked(doing string, conn int64, value any) {
	s.count.panics.Add(1)
	cause := fmt.Sprintf("%T", value)
	if fault, ok := value.(runtime.Error); ok {
		cause = fault.Error()
	}
	slog.Error("session panicked", "doing", doing, "conn", conn,
		"cause", cause, "stack", string(debug.Stack()))
}
