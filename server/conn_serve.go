package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"runtime"
	"runtime/debug"
	"time"
)

// run opens the connection, and then starts another goroutine for its batches. A handshake
// grows the stack of its goroutine to a multiple of what the batches need. Stacks shrink
// only when garbage is collected, by half each time, so idle connections would hold twice
// as much memory for them.
func (c *conn) run() {
	if err := c.open(); err != nil {
		c.closeFor(err)
		c.end()
		return
	}
	c.listener.conns.Go(c.answerAll)
}

// answerAll answers the client's batches until the connection ends.
func (c *conn) answerAll() {
	defer c.end()
	for {
		b, err := c.await()
		if err != nil {
			c.closeFor(err)
			return
		}
		if !c.answer(b) {
			return // the client has its last reply; commands sent since are not run
		}
	}
}

// answer calls the session for the batch and sends the replies: in one write, unless they
// are large. It reports whether the connection goes on.
func (c *conn) answer(b *batch) (more bool) {
	for len(b.left()) > 0 {
		quit, err := c.serve(b)
		if err != nil {
			// b is not released: a session that panicked may have left it in any state.
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

// serve calls the session for a part of the batch.
func (c *conn) serve(b *batch) (quit bool, err error) {
	if c.nextIsLong(b) {
		return c.serveLong(b)
	}
	return c.call(b, false)
}

// serveLong calls the session for a long command, which waits for a task queue.
func (c *conn) serveLong(b *batch) (quit bool, err error) {
	done := make(chan struct{})
	turn := &task{run: func() {
		defer close(done)
		// The listener's context ends before those of its connections, which are
		// cancelled one after the other.
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
	var err error // stays nil if the session panics, which it would do again
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

// handshakeTimeout bounds a TLS handshake: clients without a certificate must not hold
// connections for as long as a command may take.
const handshakeTimeout = 5 * time.Second

// open runs the TLS handshake, if there is one, and creates the session. It runs in the
// connection's goroutine, not in the accept loop, so that a slow client delays no other.
func (c *conn) open() (err error) {
	if encrypted, ok := c.Conn.(interface{ HandshakeContext(context.Context) error }); ok {
		c.armed = time.Now().Add(min(c.server.opts.RequestTimeout, handshakeTimeout))
		if err := c.SetDeadline(c.armed); err != nil {
			return err
		}
		if c.listener.draining.Load() {
			return errInterrupted
		}
		if err := encrypted.HandshakeContext(c.ctx); err != nil {
			c.server.count.handshakes.Add(1)
			if isTimeout(err) {
				return errTimeout
			}
			return err
		}
		c.peer.Certificate = verifiedCertificate(c.Conn)
	}
	defer c.survive("open", &err)
	c.session = c.server.newSession(c.peer)
	return nil
}

// verifiedCertificate returns the certificate of a TLS client, or nil.
func verifiedCertificate(nc net.Conn) *x509.Certificate {
	c, ok := nc.(interface{ ConnectionState() tls.ConnectionState })
	if !ok {
		return nil
	}
	if state := c.ConnectionState(); len(state.VerifiedChains) > 0 {
		return state.PeerCertificates[0]
	}
	return nil
}

func (c *conn) closeSession() {
	var err error
	defer c.survive("close", &err)
	c.session.Close()
}

// survive turns a panic of the session into an error. It logs the stack, and the value
// only if it is a runtime error: other panic values may contain client data.
func (c *conn) survive(doing string, err *error) {
	value := recover()
	if value == nil {
		return
	}
	*err = errPanic
	c.server.panicked(doing, c.peer.ID, value)
}

// panicked counts and logs a panic of a session.
func (s *Server) panicked(doing string, conn int64, value any) {
	s.count.panics.Add(1)
	cause := fmt.Sprintf("%T", value)
	if fault, ok := value.(runtime.Error); ok {
		cause = fault.Error()
	}
	s.opts.Log.Error("session panicked", "doing", doing, "conn", conn,
		"cause", cause, "stack", string(debug.Stack()))
}
