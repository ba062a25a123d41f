package limit

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// meantNumber matches a number with marks between thousands, a suffix for thousands or millions, or /s.
var meantNumber = regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,6})?|[0-9]{1,3}(?:[,_' ][0-9]{3}){1,3}) ?([kKmM]?)(?:/s)?$`)

// MeantNumber returns the whole number that a text such as 2k or 10,000 most likely means, or 0.
func MeantNumber(text string) int64 {
	parts := meantNumber.FindStringSubmatch(text)
	if parts == nil {
		return 0
	}
	if whole, fraction, found := strings.Cut(parts[1], "."); found && len(whole) <= 3 && len(fraction) == 3 && parts[2] == "" {
		return 0 // 1.000 is a thousand to many people
	}
	number, _ := strconv.ParseFloat(strings.NewReplacer(",", "", "_", "", "'", "", " ", "").Replace(parts[1]), 64)
	switch strings.ToLower(parts[2]) {
	case "k":
		number *= 1000
	case "m":
		number *= 1_000_000
	}
	if whole := math.Round(number); math.Abs(whole-number) < 1e-6 {
		return int64(whole)
	}
	return 0
}
