package limitimport

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

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

// mostListed bounds the names that a remark lists.
const mostListed = 5

// listed lists names, as "a, b and 3 more".
func listed(names []string) string {
	if more := len(names) - mostListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed], ", "), more)
	}
	last := len(names) - 1
	if last == 0 {
		return names[0]
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// wholeNumber reads a number of requests, and returns the mistake in it, or "".
func wholeNumber(text string) (number int64, mistake string) {
	number, err := strconv.ParseInt(text, 10, 64)
	switch {
	case isTooLarge(number, err):
		return 0, fmt.Sprintf("is too large: the largest number is %d", int64(bucket.MaxCapacity))
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
