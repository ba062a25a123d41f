package server

import (
	"bytes"
	"errors"
	"time"
)

// errHTTPRequest is a command that is the start of an HTTP request: an attacker makes a
// browser connect in the user's name, or somebody took the port for that of the page. The
// commands that arrived with it are not run, and the connection is closed after a fixed
// reply, which a browser shows to no other site's scripts.
var errHTTPRequest = errors.New("HTTP request")

// errTLSHandshake is the beginning of a TLS connection where none is expected.
var errTLSHandshake = errors.New("TLS handshake")

const (
	httpAdvice = "the page and the metrics are at the address of --admin, checks over HTTP at that of --http"
	// httpReply is the reply to a request, and httpWordReply that to a word of one in RESP.
	httpReply = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"This port speaks the protocol of Redis, not HTTP: " + httpAdvice + ".\n"
	httpWordReply = "-ERR this is the beginning of an HTTP request, and this port speaks the protocol of Redis: " + httpAdvice + "\r\n"

	tlsAdvice = "connect without TLS, or give this port a certificate with --tls-cert and --tls-key"
	// tlsReply cannot be understood as TLS: clients report that the server does not speak it.
	tlsReply = "-ERR this port does not speak TLS: " + tlsAdvice + "\r\n"
)

// isHTTPRequest reports whether a command is a line that only HTTP has.
func isHTTPRequest(command []byte, words []span) bool {
	if len(words) == 0 {
		return false
	}
	name := command[words[0].start:words[0].end]
	switch len(name) {
	case len("GET"):
		return bytes.EqualFold(name, []byte("GET")) && isRequestLine(command, words)
	case len("POST"):
		return bytes.EqualFold(name, []byte("POST")) || bytes.EqualFold(name, []byte("HEAD")) && isRequestLine(command, words)
	case len("Host:"):
		return bytes.EqualFold(name, []byte("Host:"))
	default:
		return false
	}
}

// isRequestLine reports whether a command is a line that ends with a version of HTTP.
func isRequestLine(command []byte, words []span) bool {
	return command[0] != '*' && len(words) == 3 && bytes.HasPrefix(command[words[2].start:words[2].end], []byte("HTTP/"))
}

// isTLSHandshake reports whether the first bytes of a command are those of a TLS record with a
// handshake (RFC 8446, 5.1). No line of words begins with them.
func isTLSHandshake(b []byte) bool { return len(b) > 1 && b[0] == 0x16 && b[1] == 0x03 }

// lastReply counts the end of a connection because of invalid input, and returns the reply. It
// returns nil for any other reason.
func (s *Server) lastReply(reason error, in *readBuffer) []byte {
	var breach protocolError
	switch {
	case errors.As(reason, &breach):
		s.count.protocolErrors.Add(1)
		return []byte("-ERR " + breach.Error() + "\r\n")
	case errors.Is(reason, errHTTPRequest):
		s.count.protocolErrors.Add(1)
		if s.httpReported.Allow() {
			s.opts.Log.Warn("received an HTTP request on the port for Redis clients", "advice", httpAdvice)
		}
		if in.pending() && in.buf[in.next] == '*' {
			return []byte(httpWordReply)
		}
		return []byte(httpReply)
	case errors.Is(reason, errTLSHandshake):
		s.count.protocolErrors.Add(1)
		if s.tlsReported.Allow() {
			s.opts.Log.Warn("received a TLS connection on a port without TLS", "advice", tlsAdvice)
		}
		return []byte(tlsReply)
	}
	return nil
}

// reportPause is the least time between two reports of connections that speak the same other protocol.
const reportPause = time.Minute
