package server

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"
)

// The reasons of our own to end a connection. The client is told none of them.
var (
	errDraining    = errors.New("server is draining, last batch answered")
	errInterrupted = errors.New("server is draining, nothing to answer")
	errTimeout     = errors.New("client kept us waiting")
	errRetired     = errors.New("connection is old, nothing to answer")
	errPanic       = errors.New("session panicked")
)

// conn is one client's connection. Its goroutine runs run; kill and interrupt
// may come from anywhere.
type conn struct {
	net.Conn
	listener      *listener
	server        *Server
	peer          Peer
	session       Session // nil until open
	ctx           context.Context
	cancel        context.CancelFunc
	authenticated atomic.Bool // has authenticated

	in      readBuffer
	account account
	counted int64     // in account
	kept    int64     // by the session
	since   time.Time // when the present wait for input began; zero if none
	armed   time.Time // the read deadline that is set
	// maxAgeAt is when the connection is old enough to be closed; zero is never.
	maxAgeAt time.Time
}

func newConn(l *listener, nc net.Conn) *conn {
	s := l.server
	c := &conn{Conn: nc, listener: l, server: s, maxAgeAt: s.opts.retirement(time.Now())}
	c.account.evict = func() {
		s.count.evicted.Add(1)
		c.kill()
	}
	return c
}

// await returns the next commands, at least one.
func (c *conn) await() (*batch, error) {
	for {
		if c.in.pending() {
			b := takeBatch()
			err := c.in.collect(b, c.bounds())
			if !b.empty() && !errors.Is(err, errHTTPRequest) {
				c.since = time.Time{}
				return b, nil
			}
			b.release()
			if err != nil {
				return nil, err
			}
		}
		if err := c.receive(); err != nil {
			return nil, err
		}
	}
}

func (c *conn) bounds() *parserBounds {
	if c.server.opts.RequireAuth && !c.authenticated.Load() {
		return &c.server.guestBounds
	}
	return &c.server.bounds
}

// write sends one batch's reply, within WriteTimeout.
func (c *conn) write(reply []byte) error {
	if len(reply) == 0 {
		return nil
	}
	// An error here is one that Write would return as well.
	_ = c.SetWriteDeadline(time.Now().Add(c.server.opts.WriteTimeout))
	if len(reply) > smallReply {
		c.settle(int64(cap(reply)))
	}
	_, err := c.Write(reply)
	c.settle(0)
	if isTimeout(err) {
		c.server.count.slowReaders.Add(1)
	}
	return err
}

// smallReply is the size up to which a reply does not count as held while it is
// written: as much as ten thousand connections may hold.
const smallReply = 4 << 10

// settle records what the connection holds, the part of a reply that is being written
// included.
func (c *conn) settle(unsent int64) {
	held := c.kept + unsent
	if len(c.in.buf) > batchBytes {
		held += int64(len(c.in.buf))
	}
	if held != c.counted {
		c.counted = held
		c.server.ledger.set(&c.account, held)
	}
}

// closeFor says goodbye as the reason for it demands.
func (c *conn) closeFor(reason error) {
	count := &c.server.count
	var breach protocolError
	switch {
	case errors.As(reason, &breach):
		count.protocolErrors.Add(1)
		if c.write([]byte("-ERR "+breach.Error()+"\r\n")) == nil {
			c.hangUp()
		}
	case errors.Is(reason, errHTTPRequest):
		count.protocolErrors.Add(1)
	case errors.Is(reason, errTimeout):
		count.timedOut.Add(1)
	case errors.Is(reason, errRetired):
		count.retired.Add(1)
		c.hangUp()
	case errors.Is(reason, errDraining):
		c.hangUp()
	}
}

const (
	// lingerTime is how long a client has to read the last reply and hang up; half
	// of ShutdownTimeout if that is less.
	lingerTime = time.Second
)

// hangUp ends our side and waits, a little, for the client to end its own.
// Closing with input unread would make the kernel throw away the last reply.
func (c *conn) hangUp() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	wait := min(lingerTime, c.server.opts.ShutdownTimeout/2)
	if c.SetReadDeadline(time.Now().Add(wait)) == nil {
		_, _ = io.Copy(io.Discard, c.Conn)
	}
}

// end ends the connection and its session.
func (c *conn) end() {
	_ = c.Conn.Close()
	c.cancel()
	c.in, c.kept = readBuffer{}, 0
	c.settle(0)
	if c.session != nil {
		c.closeSession()
	}
	c.listener.remove(c)
}

// kill closes the connection under whoever uses it, who then calls end. The
// session learns of it last, so that it cannot reply any more.
func (c *conn) kill() {
	// TLS would first say goodbye, which may block.
	_ = rawConn(c.Conn).Close()
	c.cancel()
}

// interrupt wakes a Read that waits for the client. Whoever sets the read
// deadline must look at listener.draining afterwards.
func (c *conn) interrupt() { _ = c.SetReadDeadline(time.Unix(1, 0)) }

// rawConn returns the connection under TLS.
func rawConn(c net.Conn) net.Conn {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return c
}

func isTimeout(err error) bool {
	if err == nil {
		return false // most often: the variable below would be allocated
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
