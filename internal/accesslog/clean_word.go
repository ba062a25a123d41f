package accesslog

import (
	"unicode"
	"unicode/utf8"
)

// maxWord is the length in bytes to which words are cut.
const maxWord = 1024

// appendClean appends s to word, with a "?" for every control character and
// every byte that is not UTF-8. It stops at the first character with which the
// word would be longer than maxWord and then reports true: nothing may follow.
// A word with a capacity of maxWord is appended to in place.
func appendClean(word []byte, s string) (longer []byte, cut bool) {
	for i := 0; i < len(s); {
		r, n := rune(s[i]), 1
		if r >= utf8.RuneSelf {
			r, n = utf8.DecodeRuneInString(s[i:])
		}
		text := s[i : i+n]
		if unicode.IsControl(r) || r == utf8.RuneError && n == 1 {
			text = "?"
		}
		if len(word)+len(text) > maxWord {
			return word, true
		}
		word = append(word, text...)
		i += n
	}
	return word, false
}
