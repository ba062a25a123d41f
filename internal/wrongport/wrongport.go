// Package wrongport reports clients that speak another protocol than the port that they have connected
// to: their errors alone do not show that.
package wrongport

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/limitgate/limitgate/internal/logthrottle"
)

const (
	// pause is the least time between two equal lines about one listener.
	pause = time.Minute
	// handshake is the first byte of a TLS connection, and array that of a command of Redis.
	handshake, array = 0x16, '*'

	withoutTLS = "received a connection without TLS on a TLS port"
	withTLS    = "received a TLS connection on a port without TLS"
	redis      = "received a Redis command on a port for HTTP"
)

// reports are the lines about one listener.
type reports struct {
	addr  string
	log   *slog.Logger
	lines map[string]*logthrottle.Throttle // by their texts
}

func newReports(l net.Listener, log *slog.Logger) *reports {
	r := &reports{addr: l.Addr().String(), log: log, lines: map[string]*logthrottle.Throttle{}}
	for _, text := range [...]string{withoutTLS, withTLS, redis} {
		r.lines[text] = &logthrottle.Throttle{Period: pause}
	}
	return r
}

// report logs a line, at a bounded rate. No text is no line.
func (r *reports) report(text string) {
	if lines := r.lines[text]; lines != nil && lines.Allow() {
		r.log.Warn(text, "addr", r.addr) //nolint:sloglint // text is one of the constants above
	}
}

// Plain returns a listener for HTTP without TLS that reports clients of Redis and of TLS.
func Plain(l net.Listener, log *slog.Logger) net.Listener {
	return &listener{l, newReports(l, log), func(first byte) string {
		switch first {
		case handshake:
			return withTLS
		case array:
			return redis
		}
		return ""
	}}
}

// Encrypted returns a listener below TLS that reports clients without TLS.
func Encrypted(l net.Listener, log *slog.Logger) net.Listener {
	return &listener{l, newReports(l, log), func(first byte) string {
		if first == handshake {
			return ""
		}
		return withoutTLS
	}}
}

// listener has connections whose first byte is looked at.
type listener struct {
	net.Listener
	reports *reports
	// wrong returns the line for the first byte of a connection, or "".
	wrong func(first byte) string
}

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c, of: l}, nil
}

// conn is a connection of a listener.
type conn struct {
	net.Conn
	of   *listener
	once sync.Once
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.once.Do(func() { c.of.reports.report(c.of.wrong(b[0])) })
	}
	return n, err
}

// CloseWrite closes the side of this program, which net/http does behind an error.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// NewTLSListener returns a listener by TLS that reports clients without TLS. Its connections are those of
// crypto/tls, over the connections of l themselves.
func NewTLSListener(l net.Listener, config *tls.Config, log *slog.Logger) net.Listener {
	return &tlsListener{l, config, newReports(l, log)}
}

type tlsListener struct {
	net.Listener
	config  *tls.Config
	reports *reports
}

// Accept implements net.Listener.
func (l *tlsListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tlsConn{tls.Server(c, l.config), l.reports}, nil
}

// tlsConn is a connection of a tlsListener.
type tlsConn struct {
	*tls.Conn
	reports *reports
}

// HandshakeContext runs the handshake, as that of tls.Conn does.
func (c *tlsConn) HandshakeContext(ctx context.Context) error {
	err := c.Conn.HandshakeContext(ctx)
	if notTLS := (tls.RecordHeaderError{}); errors.As(err, &notTLS) && notTLS.Conn != nil { // it is set for the first record
		c.reports.report(withoutTLS)
	}
	return err
}
