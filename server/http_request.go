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

const (
	httpAdvice = "the page and the metrics are at the address of --admin, checks over HTTP at that of --http"
	// httpReply is the reply to a request, and httpWordReply that to a word of one in RESP.
	httpReply = "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"This port speaks the protocol of Redis, not HTTP: " + httpAdvice + ".\n"
	httpWordReply = "-ERR this is the beginning of an HTTP request, and this port speaks the protocol of Redis: " + httpAdvice + "\r\n"
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
		s.reportHTTP()
		if in.pending() && in.buf[in.next] == '*' {
			return []byte(httpWordReply)
		}
		return []byte(httpReply)
	}
	return nil
}

// httpReportPause is the least time between two reports of an HTTP request.
const httpReportPause = time.Minute

// reportHTTP logs that a client sent HTTP, at a bounded rate.
func (s *Server) reportHTTP() {
	if s.httpReported.Allow() {
		s.opts.Log.Warn("received an HTTP request on the port for Redis clients", "advice", httpAdvice)
	}
}
