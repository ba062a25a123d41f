package server

import (
	"context"
	"errors"
	"io"
	"net"
	"time"
)

// Reasons of the server to close a connection. None of them is sent to the client.
var (
	errDraining    = errors.New("server is draining, last batch answered")
	errInterrupted = errors.New("server is draining, nothing to answer")
	errTimeout     = errors.New("client exceeded a deadline")
	errRetired     = errors.New("connection reached its maximum age, nothing to answer")
	errPanic       = errors.New("session panicked")
)

// conn is a client's connection. One goroutine at a time uses it, in run and then in
// answerAll; kill and interrupt are safe for concurrent use.
type conn struct {
	net.Conn
	listener       *listener
	server         *Server
	peer           Peer
	session        Session // nil until open has run
	ctx            context.Context
	cancel         context.CancelFunc
	authentication authentication

	in      readBuffer
	account account
	counted int64     // amount recorded in account
	kept    int64     // memory that the session keeps
	since   time.Time // start of the present wait for input; zero if there is none
	armed   time.Time // the read deadline in force
	// maxAgeAt is the time from which the connection is closed for its age; zero is
	// never.
	maxAgeAt time.Time
}

func newConn(l *listener, nc net.Conn) *conn {
	s := l.server
	c := &conn{Conn: nc, listener: l, server: s, maxAgeAt: s.opts.retirement(time.Now())}
	c.authentication.init(&s.opts)
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
	if c.authentication.missing() {
		return &c.server.unauthenticatedBounds
	}
	return &c.server.bounds
}

// write sends the reply to a batch within WriteTimeout.
func (c *conn) write(reply []byte) error {
	if len(reply) == 0 {
		return nil
	}
	// An error here would be returned by Write as well.
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

// smallReply is the largest reply that is not counted as held while it is written: ten
// thousand connections may hold that much.
const smallReply = 4 << 10

// settle records the memory that the connection holds, including the part of a reply that
// is being written.
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

// closeFor closes the connection in the way that the reason requires.
func (c *conn) closeFor(reason error) {
	count := &c.server.count
	if last := c.server.lastReply(reason, &c.in); last != nil {
		if c.write(last) == nil {
			c.hangUp()
		}
		return
	}
	switch {
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
	// lingerTime is the time a client has to read the last reply and close its side, or
	// half of ShutdownTimeout if that is less.
	lingerTime = time.Second
)

// hangUp closes the server's side and waits up to lingerTime for the client to close its
// own. If the socket were closed with unread input, the kernel would discard the last
// reply.
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

// end closes the connection and its session.
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

// kill closes the connection while its goroutine may be using it; that goroutine then
// calls end. The session's context is cancelled last, so that the session cannot reply
// any more.
func (c *conn) kill() {
	// The TLS connection would first send a close-notify alert, which may block.
	_ = rawConn(c.Conn).Close()
	c.cancel()
}

// interrupt wakes a Read that waits for the client. After setting the read deadline, a
// goroutine must check listener.draining.
func (c *conn) interrupt() { _ = c.SetReadDeadline(time.Unix(1, 0)) }

// rawConn returns the connection below TLS.
func rawConn(c net.Conn) net.Conn {
	if over, ok := c.(interface{ NetConn() net.Conn }); ok {
		return over.NetConn()
	}
	return c
}

func isTimeout(err error) bool {
	if err == nil {
		return false // the usual case, before the variable below is allocated
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
