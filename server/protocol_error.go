package server

import "fmt"

// protocolError is a violation of the framing, with the text of redis-server 7. The
// client receives it and the connection is closed.
type protocolError string

const (
	errCountLine             protocolError = "too big mbulk count string"
	errCount                 protocolError = "invalid multibulk length"
	errUnauthenticatedCount  protocolError = "unauthenticated multibulk length"
	errLengthLine            protocolError = "too big bulk count string"
	errLength                protocolError = "invalid bulk length"
	errUnauthenticatedLength protocolError = "unauthenticated bulk length"
	errInline                protocolError = "too big inline request"
	errQuotes                protocolError = "unbalanced quotes in request"
)

// Error returns the text after "-ERR " on the wire.
func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// expectedDollar returns the error for a word that does not begin with its length. Like
// Redis it shows a line break as a blank; unlike Redis it escapes unprintable characters.
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
