package limit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// percentParts is the resolution of percentages: a hundredth of a percent.
const percentParts = 10_000

// parsePercentage parses a percentage with up to two decimals, as parts of percentParts.
func parsePercentage(text string) (parts int, err error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	whole, decimals, _ := strings.Cut(number, ".")
	if !ok || whole == "" || len(whole) > 3 || len(decimals) > 2 || strings.ContainsFunc(whole+decimals, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, fmt.Errorf("%s is not a percentage: %s", Quote(text), percentageFor(text))
	}
	parts, _ = strconv.Atoi(whole + (decimals + "00")[:2]) // at most five digits
	return parts, nil
}

// formatPercentage writes parts of percentParts as a percentage.
func formatPercentage(parts int) string {
	return strconv.FormatFloat(float64(parts)/(percentParts/100), 'f', -1, 64) + "%"
}

// percentageFor says what to write in the place of a text that is no percentage: the number with its sign,
// or a share of 1 as a percentage.
func percentageFor(text string) string {
	share, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err == nil && share > 0 && share < 1:
		return "write " + formatPercentage(int(share*percentParts+0.5))
	case err == nil && share >= 1 && share <= 100:
		return "write " + formatPercentage(int(share*100+0.5))
	}
	number, percent := strings.CutSuffix(text, "%")
	if share, err = strconv.ParseFloat(strings.TrimSpace(number), 64); percent && err == nil && share > 0 && share <= 100 {
		if parts := int(math.Floor(share*100 + 1e-6)); parts > 0 {
			return "it has two decimals at most, and no blank: write " + formatPercentage(parts)
		}
		return "the least is 0.01%"
	}
	return "write for example 80%, or 0.5%"
}
