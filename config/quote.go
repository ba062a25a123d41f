package config

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote quotes user input and limits its length. Of a URL, which may contain a password, it
// leaves the scheme only.
func Quote(text string) string { return fmt.Sprintf("%.64q", hideURL(text)) }

// hideURL returns text up to the scheme of a URL in it.
func hideURL(text string) string {
	if before, _, found := strings.Cut(text, "://"); found {
		return before + "://..."
	}
	return text
}

// plain returns text unchanged if it is short and fits into a line and a column of a
// table, and otherwise quoted and shortened.
func plain(text string) string {
	text = hideURL(text)
	const most = 200
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return fmt.Sprintf("%.*q", most, text)
		}
	}
	if len(text) > most {
		return fmt.Sprintf("%.*q", most, text)
	}
	return text
}

// unreadableLine returns the first line, counted from 1, with a byte that is not UTF-8 or
// a character that YAML does not allow, and 0 when there is none. The YAML parser rejects
// those too, but does not report their line.
func unreadableLine(content []byte) int {
	const byteOrderMark = '\uFEFF'
	line := 1
	for i := 0; i < len(content); {
		r, size := utf8.DecodeRune(content[i:])
		switch {
		case r == '\n':
			line++
		case r == utf8.RuneError && size == 1,
			r == byteOrderMark && i > 0,
			r == '\uFFFE' || r == '\uFFFF',
			unicode.IsControl(r) && r != '\t' && r != '\r' && r != '\u0085':
			return line
		}
		i += size
	}
	return 0
}
