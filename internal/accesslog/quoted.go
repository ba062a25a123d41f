package accesslog

import (
	"fmt"
	"strings"
)

// cutQuoted takes the quoted field that s begins with off s. The body is still
// escaped. The name is the field's, for the error.
func cutQuoted(s, name string) (body, rest string, err error) {
	if !strings.HasPrefix(s, `"`) {
		return "", "", fmt.Errorf("the %s begins with %s: want it in double quotes", name, quote(s))
	}
	s = s[1:]
	end := strings.IndexByte(s, '"')
	// Nearly all fields have no backslash, and the search for one byte is far
	// quicker than the loop.
	if end >= 0 && strings.IndexByte(s[:end], '\\') >= 0 {
		end = indexUnescapedQuote(s)
	}
	if end < 0 {
		return "", "", fmt.Errorf("the %s has no closing quote: the line was cut short, or a backslash stands before the quote", name)
	}
	return s[:end], s[end+1:], nil
}

// indexUnescapedQuote is the index of the first double quote in s that no
// backslash escapes, or -1.
func indexUnescapedQuote(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unescape decodes the backslash escapes that Apache httpd and nginx write. A
// backslash that begins none of them stays: a log written without escaping
// still reads well.
func unescape(s string) string {
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for ; i >= 0; i = strings.IndexByte(s, '\\') {
		b = append(b, s[:i]...)
		c, n := unescapeOne(s[i:])
		b = append(b, c)
		s = s[i+n:]
	}
	return string(append(b, s...))
}

// unescapeOne decodes the escape that s, which begins with a backslash, begins
// with, and returns the byte it stands for and the escape's length.
func unescapeOne(s string) (c byte, n int) {
	if len(s) < 2 {
		return '\\', 1
	}
	switch s[1] {
	case '"', '\\':
		return s[1], 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'v':
		return '\v', 2
	case 'x':
		if len(s) >= 4 {
			high, low := hexDigit(s[2]), hexDigit(s[3])
			if high >= 0 && low >= 0 {
				return byte(high<<4 | low), 4
			}
		}
	}
	return '\\', 1
}

// hexDigit is the value of a hexadecimal digit, or -1.
func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
