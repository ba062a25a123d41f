package bucket

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// byteRate matches a count of bytes with its unit, in lower case, and a period.
var byteRate = regexp.MustCompile(`^([1-9][0-9]{0,8})\s*(k|ki|m|mi|g|gi|t|ti)?(?:b|bytes?)\s*(?:/|per)\s*([0-9]{0,6}\s*[a-z]+)$`)

// byteUnits are the bytes of the units of byteRate.
var byteUnits = map[string]int64{"": 1, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12, "ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}

// bitUnit matches a unit of bits, or one that may be.
var bitUnit = regexp.MustCompile(`[KMGT]i?b`)

// bytesMeant returns advice about a rate of bytes, or "" for another text.
func bytesMeant(text string) string {
	m := byteRate.FindStringSubmatch(strings.ToLower(text))
	if m == nil || bitUnit.MatchString(text) {
		return ""
	}
	count, _ := strconv.ParseInt(m[1], 10, 64) // at most nine digits
	if count > MaxCapacity/byteUnits[m[2]] {
		return ""
	}
	period := strings.ReplaceAll(m[3], " ", "")
	word := strings.TrimLeft(period, "0123456789")
	rate := fmt.Sprintf("%d/%s%s", count*byteUnits[m[2]], strings.TrimSuffix(period, word), otherUnits[word])
	if !isRate(rate) {
		return ""
	}
	return "a rate has no unit of bytes: write " + rate + ", and each request takes its bytes by its cost"
}
