package limitimport

import (
	"cmp"
	"strconv"
	"strings"
)

// units are the words of per and of rates that say a time.
var units = map[string]string{"second": "s", "sec": "s", "s": "s", "minute": "m", "min": "m", "m": "m", "hour": "h", "h": "h", "day": "d", "d": "d"}

// maxPeriodDigits bounds the number of units in a period.
const maxPeriodDigits = 9

// periodOf returns a period such as minute, 5m or month as limits files write it, and whether it is
// one.
func periodOf(text string) (period string, ok bool) {
	text = strings.ToLower(text)
	if text == "month" {
		return text, true
	}
	word := strings.TrimLeft(text, "0123456789")
	unit, digits := cmp.Or(units[word], units[strings.TrimSuffix(word, "s")]), text[:len(text)-len(word)]
	if unit == "" || digits == "" {
		return unit, unit != ""
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" || len(digits) > maxPeriodDigits {
		return "", false
	}
	if digits == "1" {
		digits = ""
	}
	return digits + unit, true
}

// otherPeriods are periods by names that other software has, as per and rate have them.
var otherPeriods = map[string]string{
	"secondly": "second", "minutely": "minute", "hourly": "hour", "hr": "hour", "daily": "day", "monthly": "month",
	"w": "7d", "wk": "7d", "week": "7d", "weekly": "7d", "fortnight": "14d", "year": "366d", "yr": "366d", "yearly": "366d", "annual": "366d", "annually": "366d",
}

// otherPeriod returns the period that a word means which is none of per and rate, such as weekly or
// 2weeks, or "".
func otherPeriod(text string) string {
	text = strings.ToLower(text)
	word := strings.TrimLeft(text, "0123456789")
	meant := cmp.Or(otherPeriods[word], otherPeriods[strings.TrimSuffix(word, "s")])
	n, err := strconv.Atoi(text[:len(text)-len(word)])
	if err != nil || n < 2 || meant == "" {
		return meant
	}
	days, err := strconv.Atoi(strings.TrimSuffix(meant, "d"))
	if err != nil || n > 366/days {
		return ""
	}
	return strconv.Itoa(n*days) + "d"
}
