package limit

import (
	"strconv"
	"strings"
	"unicode"
)

// maxShown is the maximum number of bytes of a text that a message repeats.
const maxShown = 64

// Quote quotes text for a message: bounded, with control characters escaped.
func Quote(text string) string {
	if len(text) > maxShown {
		text = strings.ToValidUTF8(text[:maxShown], "") + "..."
	}
	return strconv.Quote(text)
}

// Shorten bounds text for a message, and puts a question mark in the place of each control character and of what is
// not UTF-8.
func Shorten(text string) string {
	if len(text) > maxShown {
		text = text[:maxShown] + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
}
