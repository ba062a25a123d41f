package limitimport

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// prefixText is the remark on limits by the address, of software that counts each.
const prefixText = "an IPv6 address counts by its first 64 bits here, and by all of them in %s: serve --privacy-ipv6-prefix 128 counts it so"

// nearest returns the candidate that a word most likely means, or "".
func nearest(word string, candidates []string) string {
	return limit.Nearest(strings.ToLower(word), candidates)
}

// question asks whether a word is meant, or returns "" without one.
func question(word string) string {
	if word == "" {
		return ""
	}
	return "; did you mean " + word + "?"
}

// mostNamed bounds the names and the lines that a remark lists.
const mostNamed = 10

// named returns the first of several words, and how many more there are.
func named(words []string) string {
	if n := len(words) - mostNamed; n > 0 {
		return strings.Join(words[:mostNamed], ", ") + " and " + strconv.Itoa(n) + " more"
	}
	return strings.Join(words, ", ")
}

// namedLines does the same with lines.
func namedLines(lines []int) string {
	words := make([]string, 0, len(lines))
	for _, line := range lines {
		words = append(words, strconv.Itoa(line))
	}
	return named(words)
}

// wholeNumber reads a number of requests, and returns the mistake in it, or "".
func wholeNumber(text string) (number int64, mistake string) {
	number, err := strconv.ParseInt(text, 10, 64)
	switch {
	case isTooLarge(number, err):
		return 0, fmt.Sprintf("is too large: the largest number is %d", int64(bucket.MaxCapacity))
	case strings.Contains(text, "{{") || strings.HasPrefix(text, "$"):
		return 0, "is a placeholder: put a number in its place first"
	case err != nil || number < 1:
		return 0, "is no whole number above zero"
	}
	return number, ""
}

// isTooLarge reports whether a number that strconv.ParseInt returned is more than limits can count.
func isTooLarge(number int64, err error) bool {
	return number > bucket.MaxCapacity && (err == nil || errors.Is(err, strconv.ErrRange))
}

// isOn reads a switch, and reports whether it is one.
func isOn(text string) (on, known bool) {
	switch strings.ToLower(text) {
	case "true", "yes", "on", "1":
		return true, true
	case "false", "no", "off", "0":
		return false, true
	}
	return false, false
}
