package server

import (
	"errors"
	"fmt"
)

// protocolError is a breach of framing, in the words of redis-server 7. The
// client is told and the connection closed.
type protocolError string

const (
	errCountLine   protocolError = "too big mbulk count string"
	errCount       protocolError = "invalid multibulk length"
	errGuestCount  protocolError = "unauthenticated multibulk length"
	errLengthLine  protocolError = "too big bulk count string"
	errLength      protocolError = "invalid bulk length"
	errGuestLength protocolError = "unauthenticated bulk length"
	errInline      protocolError = "too big inline request"
	errQuotes      protocolError = "unbalanced quotes in request"
)

// errHTTPRequest is a command that is really the start of an HTTP request: somebody
// has a browser talk to us in their name. The connection is closed in silence
// and what came along is not run.
var errHTTPRequest = errors.New("HTTP request")

// Error returns what follows "-ERR " on the wire.
func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// expectedDollar words the error for a word that does not begin with its length.
// Like Redis it shows a line break as a blank; unlike Redis it escapes what is
// not printable.
func expectedDollar(got byte) protocolError {
	shown := string(rune(got))
	switch {
	case got == '\r' || got == '\n':
		shown = " "
	case got < ' ' || got > '~':
		shown = fmt.Sprintf(`\x%02x`, got)
	}
	return protocolError("expected '$', got '" + shown + "'")
}
