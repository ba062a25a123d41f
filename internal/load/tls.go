package load

import (
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// dialTimeout bounds each wait for a server while a connection is opened.
const dialTimeout = 10 * time.Second

// secure is the TLS of a connection.
type secure struct {
	conn  *tls.Conn
	wire  *wire
	plain []byte // holds requests while they are encrypted
}

// encrypt makes the TLS handshake of a connection.
func (c *conn) encrypt(config *tls.Config) error {
	w := &wire{c: c, waits: true}
	s := &secure{conn: tls.Client(w, config), wire: w}
	if err := s.conn.Handshake(); err != nil {
		return fmt.Errorf("make load: handshake: %w", err)
	}
	if err := w.flush(); err != nil {
		return fmt.Errorf("make load: handshake: %w", err)
	}
	w.waits = false
	c.secure = s
	return nil
}

// seal replaces the requests at the end of out by their encrypted form.
func (c *conn) seal(begin int) error {
	s := c.secure
	if s == nil {
		return nil
	}
	s.plain = append(s.plain[:0], c.out[begin:]...)
	c.out = c.out[:begin]
	if _, err := s.conn.Write(s.plain); err != nil {
		return fmt.Errorf("encrypt requests: %w", err)
	}
	return nil
}

// wake records that the socket may have input.
func (c *conn) wake() {
	if c.secure != nil {
		c.secure.wire.drained = false
	}
}

// wire carries the records of a connection's TLS. Records to send are added to the
// connection's output, so that the thread of the generator blocks in no write.
type wire struct {
	c *conn
	// waits makes Read send the output and wait for input, for the handshake.
	waits bool
	// drained means that the last read emptied the socket: until the poller reports more
	// input, another read is a wasted system call.
	drained bool
}

func (w *wire) Read(b []byte) (int, error) {
	if w.waits {
		if err := w.await(); err != nil {
			return 0, err
		}
	} else if w.drained {
		return 0, errAgain
	}
	n, err := readSocket(w.c.fd, b)
	w.drained = n < len(b)
	return n, err
}

// await sends the output and waits for input.
func (w *wire) await() error {
	if err := w.flush(); err != nil {
		return err
	}
	return awaitInput(w.c.fd, dialTimeout)
}

// flush sends the output of a handshake, for which the socket's buffer has room.
func (w *wire) flush() error {
	out := w.c.out
	w.c.out = out[:0]
	for len(out) > 0 {
		n, err := writeSocket(w.c.fd, out)
		if err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

func (w *wire) Write(b []byte) (int, error) {
	w.c.out = append(w.c.out, b...)
	return len(b), nil
}

// The rest of net.Conn, of which TLS needs nothing here: the generator closes the
// descriptor itself.

func (w *wire) Close() error                     { return nil }
func (w *wire) LocalAddr() net.Addr              { return nil }
func (w *wire) RemoteAddr() net.Addr             { return nil }
func (w *wire) SetDeadline(time.Time) error      { return nil }
func (w *wire) SetReadDeadline(time.Time) error  { return nil }
func (w *wire) SetWriteDeadline(time.Time) error { return nil }

// notReady is the error of a socket that is not ready. TLS passes it on and goes on at
// the next call, as it does with temporary errors alone.
type notReady struct{}

func (notReady) Error() string   { return "not now" }
func (notReady) Timeout() bool   { return true }
func (notReady) Temporary() bool { return true }

// errAgain means that a socket is not ready.
var errAgain net.Error = notReady{}
