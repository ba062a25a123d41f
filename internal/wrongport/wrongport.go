// Package wrongport reports clients that speak another protocol than the port that they have connected
// to, and answers them in their own where that is possible: their errors alone do not show the reason.
package wrongport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
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
	// answerTime bounds writing an answer, and lingerTime and lingerBytes what is read afterwards, so that
	// the end of the connection does not overtake the answer.
	answerTime, lingerTime, lingerBytes = time.Second, 100 * time.Millisecond, 16 << 10

	withoutTLS = "received a connection without TLS on a TLS port: clients connect by TLS, as redis-cli --tls and curl https:// do"
	withTLS    = "received a TLS connection on a port without TLS: clients connect without it"
	redis      = "received a Redis command on a port for HTTP: Redis clients connect to the address of --listen"
	redisGRPC  = "received a Redis command on a port for gRPC: Redis clients connect to the address of --listen"
	httpGRPC   = "received an HTTP/1 request on a port for gRPC"

	redisAnswer = "-ERR this port speaks HTTP: Redis clients connect to the address of --listen\r\n"
	grpcAnswer  = "-ERR this port speaks gRPC: Redis clients connect to the address of --listen\r\n"
	tlsAnswer   = "-ERR this port speaks TLS: connect by TLS, as redis-cli --tls does\r\n"
	badRequest  = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n"
	http1Answer = badRequest + "This port speaks gRPC: requests as JSON are sent to the address of --rls-http.\n"
	httpsAnswer = badRequest + "Client sent an HTTP request to an HTTPS server: write https://.\n"
)

// finding is what the first bytes of a connection show: a line for the log, and an answer, or "".
type finding struct{ line, answer string }

// reports are the lines about one listener.
type reports struct {
	addr  string
	log   *slog.Logger
	lines map[string]*logthrottle.Throttle // by their texts
}

func newReports(l net.Listener, log *slog.Logger) *reports {
	r := &reports{addr: l.Addr().String(), log: log, lines: map[string]*logthrottle.Throttle{}}
	for _, text := range [...]string{withoutTLS, withTLS, redis, redisGRPC, httpGRPC} {
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
	return &listener{l, newReports(l, log), func(first []byte) finding {
		switch first[0] {
		case handshake:
			return finding{line: withTLS}
		case array:
			return finding{redis, redisAnswer}
		}
		return finding{}
	}}
}

// GRPC returns a listener for gRPC without TLS that reports clients of Redis, of HTTP/1 and of TLS.
func GRPC(l net.Listener, log *slog.Logger) net.Listener {
	return &listener{l, newReports(l, log), func(first []byte) finding {
		switch {
		case first[0] == handshake:
			return finding{line: withTLS}
		case first[0] == array:
			return finding{redisGRPC, grpcAnswer}
		case isHTTP1(first):
			return finding{httpGRPC, http1Answer}
		}
		return finding{}
	}}
}

// Encrypted returns a listener below TLS that reports clients without TLS.
func Encrypted(l net.Listener, log *slog.Logger) net.Listener {
	return &listener{l, newReports(l, log), func(first []byte) finding {
		switch {
		case first[0] == handshake:
			return finding{}
		case first[0] == array:
			return finding{withoutTLS, tlsAnswer}
		case isHTTP1(first):
			return finding{withoutTLS, httpsAnswer}
		}
		return finding{line: withoutTLS}
	}}
}

// isHTTP1 reports whether the first bytes of a connection are those of a method. HTTP/2 begins with PRI.
func isHTTP1(first []byte) bool {
	if len(first) < 4 {
		return false
	}
	switch string(first[:4]) {
	case "GET ", "HEAD", "POST", "PUT ", "PATC", "DELE", "OPTI":
		return true
	}
	return false
}

// listener has connections whose first bytes are looked at.
type listener struct {
	net.Listener
	reports *reports
	// wrong returns what the first bytes of a connection show, of which there is at least one.
	wrong func(first []byte) finding
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

// NetConn returns the connection below, as that of a tls.Conn.
func (c *conn) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn. A connection that got an answer has ended.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n == 0 {
		return n, err
	}
	c.once.Do(func() {
		found := c.of.wrong(b[:n])
		if c.of.reports.report(found.line); found.answer != "" {
			answer(c.Conn, found.answer)
			n, err = 0, io.EOF
		}
	})
	return n, err
}

// answer writes an answer to a connection that is about to be closed.
func answer(c net.Conn, text string) {
	_ = c.SetDeadline(time.Now().Add(answerTime))
	if _, err := io.WriteString(c, text); err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c, lingerBytes)
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
		answer(notTLS.Conn, tlsAnswer)
	}
	return err
}
