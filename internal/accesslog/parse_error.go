package accesslog

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// ParseError is a line of a log that cannot be parsed. [Reader.Next] returns it
// and can then be called on for the next line.
type ParseError struct {
	// Line is the line's number, from 1.
	Line int

	// Text is the beginning of the line, at most 80 bytes. Control characters
	// and invalid UTF-8 are escaped as \xHH, other characters that do not
	// print as \uHHHH or \UHHHHHHHH. A text that was cut ends with "…".
	Text string

	// Reason is a sentence with the mistake and its correction.
	Reason string
}

// Error is the line's number, the reason and the text, in one line that is safe
// to print to a terminal.
func (e *ParseError) Error() string {
	return fmt.Sprintf("parse line %d: %s; the line begins: %s", e.Line, e.Reason, e.Text)
}

const (
	// maxExcerpt is the length of an excerpt in bytes.
	maxExcerpt = 80
	ellipsis   = "…"
)

// excerpt is the beginning of s, at most maxExcerpt bytes, fit for a terminal: bytes of a
// client must not move the reader's cursor.
func excerpt(s string) string {
	b := make([]byte, 0, maxExcerpt+utf8.UTFMax)
	room := 0 // The length up to which an ellipsis still fits.
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		b = appendPrintable(b, s[i:i+n], r)
		if len(b) > maxExcerpt {
			return string(b[:room]) + ellipsis
		}
		if len(b) <= maxExcerpt-len(ellipsis) {
			room = len(b)
		}
		i += n
	}
	return string(b)
}

// quote is an excerpt of s in double quotes, for an error.
func quote(s string) string {
	return `"` + excerpt(s) + `"`
}

// appendPrintable appends to b the character r, encoded as text, or an escape
// that shows it.
func appendPrintable(b []byte, text string, r rune) []byte {
	switch {
	case r < utf8.RuneSelf && unicode.IsPrint(r), r >= utf8.RuneSelf && unicode.IsPrint(r) && len(text) > 1:
		return append(b, text...)
	case len(text) == 1: // A control character or a byte that is not UTF-8.
		return fmt.Appendf(b, `\x%02x`, text[0])
	case r > 0xffff:
		return fmt.Appendf(b, `\U%08x`, r)
	default:
		return fmt.Appendf(b, `\u%04x`, r)
	}
}
