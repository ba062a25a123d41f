package accesslog

import (
	"errors"
	"fmt"
	"strings"
)

// parseRequest takes "METHOD TARGET PROTO", in its quotes, off s.
func (e *Entry) parseRequest(s string) (rest string, err error) {
	line, rest, err := cutQuoted(s, "request")
	if err != nil {
		return "", err
	}
	return rest, e.splitRequest(line)
}

// splitRequest splits a request line, still escaped, into its parts. Clients
// send targets with raw spaces in them, so only the first and the last word
// are sure.
func (e *Entry) splitRequest(line string) error {
	line = strings.Trim(line, " ")
	if line == "-" || line == "" {
		return fmt.Errorf("the request is \"%s\": the client closed the connection, or sent nonsense, before the server had a request to log", line)
	}
	method, target, _ := strings.Cut(line, " ")
	method = unescape(method)
	if !isToken(method) {
		return fmt.Errorf("the request begins with %s: want a method such as GET (other bytes are often TLS sent to a plain port)", quote(method))
	}
	proto := ""
	if i := strings.LastIndexByte(target, ' '); strings.HasPrefix(target[i+1:], "HTTP/") {
		// Without a space, i is -1 and the protocol is all there is.
		target, proto = target[:max(i, 0)], target[i+1:]
	}
	target = strings.Trim(target, " ")
	if target == "" {
		return errors.New("the request has no target: want a method and a target, for example \"GET /index.html HTTP/1.1\"")
	}
	e.Method, e.Target, e.Proto = method, unescape(target), unescape(proto)
	return nil
}

// isToken reports whether s is a token of RFC 9110, section 5.6.2.
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case 'A' <= c && c <= 'Z', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}
