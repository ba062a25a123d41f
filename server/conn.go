package server

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// doorbell is all that redcon ever reads: a command that says that a batch
// waits in its connection. Its 16 bytes divide redcon's buffer of 4,096, so the
// buffer neither cuts it in two nor grows.
const doorbell = "*1\r\n$6\r\nanswer\r\n"

// The reasons of our own to end a connection. The client is told none of them.
var (
	errDraining    = errors.New("server is draining, last batch answered")
	errInterrupted = errors.New("server is draining, nothing to answer")
	errTimeout     = errors.New("client kept us waiting")
	errPanic       = errors.New("session panicked")
)

// conn is the guard under redcon: redcon sees a connection on which doorbells
// arrive. Only redcon's goroutine for the connection calls Read, Write and
// Close; kill and interrupt may come from anywhere.
type conn struct {
	net.Conn
	listener *listener
	server   *Server
	peer     Peer
	session  Session // nil until the first Read
	ctx      context.Context
	cancel   context.CancelFunc
	member   atomic.Bool // has authenticated
	closing  sync.Once

	in    input
	batch *batch    // what the doorbell rang for, else nil
	since time.Time // when the present wait for input began; zero if none
	armed time.Time // the read deadline that is set
}

// Read waits for a batch and rings the doorbell. Every error ends the
// connection; redcon is told io.EOF, since it would answer others itself.
func (c *conn) Read(p []byte) (int, error) {
	if c.session == nil {
		if err := c.open(); err != nil {
			return 0, c.part(err)
		}
	}
	if err := c.await(); err != nil {
		return 0, c.part(err)
	}
	return copy(p, doorbell), nil
}

// await returns when c.batch holds commands.
func (c *conn) await() error {
	for {
		if c.in.pending() {
			b := takeBatch()
			err := c.in.collect(b, c.limits())
			if !b.empty() && !errors.Is(err, errBrowser) {
				c.batch, c.since = b, time.Time{}
				return nil
			}
			b.release()
			if err != nil {
				return err
			}
		}
		if err := c.receive(); err != nil {
			return err
		}
	}
}

func (c *conn) limits() *limits {
	if c.server.opts.RequireAuth && !c.member.Load() {
		return &c.server.guestLimits
	}
	return &c.server.limits
}

// Write sends one batch's reply, within WriteTimeout.
func (c *conn) Write(reply []byte) (int, error) {
	if len(reply) == 0 {
		return 0, nil // redcon flushes its own buffer, which stays empty
	}
	// An error here is one that Write would return as well.
	_ = c.SetWriteDeadline(time.Now().Add(c.server.opts.WriteTimeout))
	n, err := c.Conn.Write(reply)
	if isTimeout(err) {
		c.server.count.slowReaders.Add(1)
	}
	return n, err
}

// part says goodbye as the reason for it demands.
func (c *conn) part(reason error) error {
	count := &c.server.count
	var breach protocolError
	switch {
	case errors.As(reason, &breach):
		count.protocolErrors.Add(1)
		if _, err := c.Write([]byte("-ERR " + breach.Error() + "\r\n")); err == nil {
			c.hangUp()
		}
	case errors.Is(reason, errBrowser):
		count.protocolErrors.Add(1)
	case errors.Is(reason, errTimeout):
		count.timedOut.Add(1)
	case errors.Is(reason, errDraining):
		c.hangUp()
	}
	return io.EOF
}

const (
	// lingerTime is how long a client has to read the last reply and hang up; half
	// of ShutdownTimeout if that is less.
	lingerTime = time.Second
	// lingerBytes is how much it may have been sending meanwhile.
	lingerBytes = 256 << 10
)

// hangUp ends our side and waits, a little, for the client to end its own.
// Closing with input unread would make the kernel throw away the last reply.
func (c *conn) hangUp() {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		return
	}
	patience := min(lingerTime, c.server.opts.ShutdownTimeout/2)
	if c.SetReadDeadline(time.Now().Add(patience)) == nil {
		_, _ = io.CopyN(io.Discard, c.Conn, lingerBytes)
	}
}

// Close ends the connection and its session.
func (c *conn) Close() error {
	var err error
	c.closing.Do(func() {
		err = c.Conn.Close()
		c.cancel()
		if c.session != nil {
			c.closeSession()
		}
		c.listener.remove(c)
	})
	return err
}

// kill closes the connection under whoever uses it, who then calls Close. The
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
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
