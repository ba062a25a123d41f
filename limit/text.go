package limit

import (
	"strconv"
	"strings"
)

// maxQuoted is the maximum number of bytes of a text that a message repeats.
const maxQuoted = 64

// Quote quotes text for a message: bounded, with control characters escaped.
func Quote(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "..."
	}
	return strconv.Quote(text)
}
