package limitimport

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// units are the words of per and of rates that say a time.
var units = map[string]string{"second": "s", "sec": "s", "s": "s", "minute": "m", "min": "m", "m": "m", "hour": "h", "h": "h", "day": "d", "d": "d"}

// maxPeriodDigits bounds the number of units in a period.
const maxPeriodDigits = 9

// periodOf returns a period such as minute, 5m or month as limits files write it, and whether it is
// one.
func periodOf(text string) (period string, ok bool) {
	if strings.TrimLeft(text, "0123456789") == "M" {
		return "", false // a minute or a month
	}
	text = strings.ToLower(text)
	if text == "month" {
		return text, true
	}
	word := strings.TrimLeft(text, "0123456789")
	unit, digits := units[word], text[:len(text)-len(word)]
	if unit == "" && len(word) > len("ms") { // secs, and no milliseconds
		unit = units[strings.TrimSuffix(word, "s")]
	}
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

// noPeriod returns why a word of per is no period, with a sentence about the one to write, or "".
func noPeriod(word string) string {
	switch unit := strings.ToLower(strings.TrimLeft(word, "0123456789")); {
	case strings.TrimLeft(word, "0123456789") == "M":
		return "M is a minute or a month: write minute or month"
	case unit == "ms" || strings.HasPrefix(unit, "milli"):
		return limit.Shorten(word) + " is too short a period: write the rate by the second"
	case otherPeriod(word) != "":
		return limit.Shorten(word) + " is no period here: write " + otherPeriod(word)
	}
	return ""
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

// rateMeant returns what limits files say about a rate whose period is in milliseconds or M, or "".
func rateMeant(count, period string) string {
	unit := strings.TrimLeft(period, "0123456789")
	if unit != "M" && strings.ToLower(unit) != "ms" {
		return ""
	}
	if _, err := bucket.ParseRate(count + "/" + period); err != nil {
		return limit.Shorten(count+"/"+period) + ": " + err.Error()
	}
	return ""
}
