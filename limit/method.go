package limit

import (
	"slices"
	"strings"
)

// methods are the methods of HTTP.
var methods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"}

// IsMethod reports whether a word is one of HTTP's methods, in capitals or not.
func IsMethod(word string) bool { return slices.Contains(methods, strings.ToUpper(word)) }
