package httpfields

import (
	"regexp"
	"slices"
	"strings"
)

// credentialWords are the parts of names of header fields that have secrets.
var credentialWords = []string{"auth", "cookie", "key", "token", "secret", "password", "session"}

// IsCredential reports whether the name of a header field, in any case, says that its value is a secret. It may be
// called concurrently.
func IsCredential(name string) bool {
	name = strings.ToLower(name)
	return slices.ContainsFunc(credentialWords, func(word string) bool { return strings.Contains(name, word) })
}

// addressName matches names of header fields that proxies write addresses of clients into.
var addressName = regexp.MustCompile(`(?i)(?:^|[-_])(?:forwarded(?:[-_]for)?|(?:client|connecting|real|remote)[-_](?:ip|addr))$`)

// IsAddress reports whether the name of a header field, in any case, says that its value is the address of a client. It may
// be called concurrently.
func IsAddress(name string) bool { return addressName.MatchString(name) }
