package config

import (
	"fmt"
	"unicode"
	"unicode/utf8"
)

// show quotes user input and limits its length.
func show(text string) string { return fmt.Sprintf("%.64q", text) }

// plain returns text unchanged if it is short and fits into a line and a column of a
// table, and otherwise quoted and shortened.
func plain(text string) string {
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
