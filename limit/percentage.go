package limit

import (
	"fmt"
	"strconv"
	"strings"
)

// shareParts is the resolution of percentages: a hundredth of a percent.
const shareParts = 10_000

// parsePercentage parses a percentage with up to two decimals, as parts of shareParts.
func parsePercentage(text string) (parts int, err error) {
	number, ok := strings.CutSuffix(strings.TrimSpace(text), "%")
	whole, decimals, _ := strings.Cut(number, ".")
	if !ok || whole == "" || len(whole) > 3 || len(decimals) > 2 || strings.ContainsFunc(whole+decimals, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, fmt.Errorf("%s is not a percentage: for example 10%%, or 0.5%%", quote(text))
	}
	parts, _ = strconv.Atoi(whole + (decimals + "00")[:2]) // at most five digits
	return parts, nil
}

// formatPercentage writes parts of shareParts as a percentage.
func formatPercentage(parts int) string {
	return strconv.FormatFloat(float64(parts)/(shareParts/100), 'f', -1, 64) + "%"
}
