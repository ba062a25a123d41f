package limit

import (
	"slices"
	"strings"
)

// methods are the methods of HTTP.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

// IsMethod reports whether a word is one of HTTP's methods, in capitals or not.
func IsMethod(word string) bool { return slices.Contains(methods, strings.ToUpper(word)) }

// meantMethod returns the method of HTTP that a word in capitals is a misspelling of, or "".
func meantMethod(word string) string {
	isOther := func(c rune) bool { return c < 'A' || c > 'Z' }
	if len(word) < minSpelled || IsMethod(word) || strings.ContainsFunc(word, isOther) {
		return ""
	}
	for _, method := range methods {
		if word[0] == method[0] && isWithin(word, method, 1) {
			return method
		}
	}
	return ""
}
