package bucket

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// otherRate matches a rate as people write it elsewhere: a count with separators, decimals or a k, and
// a period with a number and a unit, or none.
var otherRate = regexp.MustCompile(`^([0-9]+(?:[,_][0-9]{3})*)(?:\.([0-9]{1,6}))?\s*(k)?\s*(?:r|req|reqs|requests|units|calls)?\s*(?:/|per|p|a)?\s*([0-9]{0,6})\s*([a-z]*)$`)

// otherUnits are the units of periods by their names elsewhere. Milliseconds are converted.
var otherUnits = map[string]string{
	"s": "s", "sec": "s", "secs": "s", "second": "s", "seconds": "s", "m": "m", "min": "m", "mins": "m", "mn": "m", "minute": "m", "minutes": "m",
	"h": "h", "hr": "h", "hrs": "h", "hour": "h", "hours": "h", "d": "d", "day": "day", "days": "d", "daily": "day", "month": "month", "months": "month", "monthly": "month",
}

// rateForm returns the error for a text that is no rate, with the rate that it means if that is clear.
func rateForm(text string) error {
	trimmed := strings.TrimSpace(text)
	text = strings.ToLower(trimmed)
	if advice := cmp.Or(asPrinted(text), bytesMeant(trimmed)); advice != "" {
		return errors.New(advice)
	}
	m := otherRate.FindStringSubmatch(text)
	if m == nil {
		return oddRate(text)
	}
	if m[5] == "m" && strings.HasSuffix(trimmed, "M") {
		return fmt.Errorf("the unit M is a minute or a month: write %s for each minute, or %s for each month of the calendar",
			strings.TrimSuffix(trimmed, "M")+"m", m[1]+"/month")
	}
	if m[4] == "" && m[5] == "" {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
			return fmt.Errorf("a rate is COUNT/PERIOD, and PERIOD is missing: for example %d/s, %[1]d/15m or %[1]d/h", n)
		}
		return errRateForm
	}
	if m[5] == "" && isRate(text+"s") {
		return fmt.Errorf("PERIOD has a unit: write %ss for seconds, or m, h or d in the place of s", text)
	}
	count, err := strconv.ParseInt(strings.NewReplacer(",", "", "_", "").Replace(m[1])+m[2], 10, 64)
	every := int64(1)
	if m[4] != "" && strings.Trim(m[4], "0") == "" && otherUnits[m[5]] != "" {
		return fmt.Errorf("PERIOD is above zero: write %s/%s", m[1], otherUnits[m[5]])
	}
	if m[4] != "" {
		every, _ = strconv.ParseInt(m[4], 10, 64) // at most six digits
	}
	if err != nil || count <= 0 || every == 0 || count > MaxCapacity/1000 {
		return errRateForm
	}
	for range m[2] { // the decimals
		every *= 10
	}
	unit := otherUnits[m[5]]
	switch {
	case m[3] != "":
		count *= 1000
	case m[5] == "w" || m[5] == "week" || m[5] == "weeks":
		every, unit = 7*every, "d"
	case m[5] == "ms":
		count, unit = count*1000, "s"
	}
	if m[2] != "" || m[5] == "ms" { // otherwise COUNT is the burst
		g := gcd(count, every)
		count, every = count/g, every/g
	}
	return rateMeant(text, count, every, unit)
}

// exponent matches a count with an exponent.
var exponent = regexp.MustCompile(`^([1-9][0-9]{0,5})e([0-9])$`)

// millions matches a count in millions.
var millions = regexp.MustCompile(`^([1-9][0-9]{0,5})(?:\.([0-9]))? ?(?:m|mio|million)$`)

// noLimit has words that stand elsewhere for a rate without a bound.
var noLimit = map[string]bool{"unlimited": true, "infinite": true, "infinity": true, "inf": true, "none": true, "no": true, "off": true, "-1": true}

// oddRate returns the error for a text that otherRate does not match.
func oddRate(text string) error {
	if noLimit[text] {
		return errors.New("where there is no limit, action: allow stands instead of a rate; mode: off leaves this limit out")
	}
	count, period, _ := strings.Cut(text, "/")
	if positive, ok := strings.CutPrefix(count, "-"); ok && isRate(positive+"/"+period) {
		return fmt.Errorf("COUNT is above zero: write %s/%s, or to refuse everything action: deny instead of a rate", positive, period)
	}
	meant := ""
	if m := exponent.FindStringSubmatch(count); m != nil {
		zeros, _ := strconv.Atoi(m[2]) // one digit
		meant = m[1] + strings.Repeat("0", zeros) + "/" + period
	} else if m := millions.FindStringSubmatch(count); m != nil {
		meant = m[1] + m[2] + strings.Repeat("0", 6-len(m[2])) + "/" + period
	} else if first, _, found := strings.Cut(period, "/"); found {
		meant = count + "/" + first
	} else if m := fraction.FindStringSubmatch(period); m != nil {
		meant = wholePeriod(count, m[1]+m[2], len(m[2]), m[3])
	} else if d, err := time.ParseDuration(period); err == nil && d >= time.Second && d%time.Second == 0 {
		meant = count + "/" + inOneUnit(d)
	}
	if !isRate(meant) {
		return errRateForm
	}
	return errMeant(text, meant)
}

// otherNumber matches a number with a separator, a fraction, an exponent, or a letter for thousands or millions.
var otherNumber = regexp.MustCompile(`[0-9][.,_][0-9]|^[0-9]+ ?(?:k|m|mio|million|e[0-9])\b`)

// thousands matches a count that is a whole number, or one with a separator of thousands.
var thousands = regexp.MustCompile(`^([1-9][0-9]{0,2})\.(000)(/\w+)$`)

// errMeant returns the error for a text in the place of a rate.
func errMeant(text, meant string) error {
	if otherNumber.MatchString(text) {
		if m := thousands.FindStringSubmatch(text); m != nil {
			return fmt.Errorf("a rate is COUNT/PERIOD, of whole numbers: write %s, or %s%s%s if the . separates thousands", meant, m[1], m[2], m[3])
		}
		return fmt.Errorf("a rate is COUNT/PERIOD, of whole numbers: write %s", meant)
	}
	return fmt.Errorf("a rate is COUNT/PERIOD: write %s", meant)
}

// Texts of limits as they are printed, with other fields behind the rate or in its place.
var (
	printedBurst = regexp.MustCompile(`^(\S+) burst:? (\d{1,13})$`)
	printedSlots = regexp.MustCompile(`^(\d{1,7}) slots?$`)
	printedZone  = regexp.MustCompile(`^(\S+/(?:day|month)) (\S+/\S+|utc)$`)
)

// asPrinted returns advice about a limit as it is printed, in the place of a rate, or "".
func asPrinted(text string) string {
	if m := printedBurst.FindStringSubmatch(text); m != nil && isRate(m[1]) {
		return fmt.Sprintf("the burst is a field of its own: write rate: %s, burst: %s", m[1], m[2])
	}
	if m := printedSlots.FindStringSubmatch(text); m != nil {
		return fmt.Sprintf("slots are no rate: write algorithm: concurrency, slots: %s", m[1])
	}
	if m := printedZone.FindStringSubmatch(text); m != nil && isRate(m[1]) {
		return fmt.Sprintf("the time zone is a field of its own: write rate: %s, timezone: NAME", m[1])
	}
	return ""
}

// fraction matches a period with decimals.
var fraction = regexp.MustCompile(`^([0-9]{0,3})\.([0-9]{1,3})([smh])$`)

// wholePeriod returns a rate whose period is a number with decimals, of which digits has all digits, in whole numbers.
func wholePeriod(count, digits string, decimals int, unit string) string {
	n, err := ParseDigits(count)
	every, _ := ParseDigits(digits) // at most six
	if err != nil || n == 0 || n > MaxCapacity/1000 || every == 0 {
		return ""
	}
	for range decimals {
		n *= 10
	}
	g := gcd(n, every)
	period := strconv.FormatInt(every/g, 10)
	if every == g {
		period = ""
	}
	return strconv.FormatInt(n/g, 10) + "/" + period + unit
}

// isRate reports whether a text is a rate.
func isRate(text string) bool {
	count, period, _ := strings.Cut(text, "/")
	n, err := ParseDigits(count)
	r := Rate{Count: n}
	return err == nil && n > 0 && n <= MaxCapacity && period != "" && !strings.Contains(period, "/") && r.parsePeriod(period) == nil
}

// inOneUnit returns whole seconds in the largest unit of a period that has no fraction.
func inOneUnit(d time.Duration) string {
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d%time.Minute == 0:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// rateMeant returns the error that names a rate.
func rateMeant(text string, count, every int64, unit string) error {
	meant := fmt.Sprintf("%d/%s", count, unit)
	switch {
	case unit == "":
		return errRateForm
	case every > 1 && (unit == "day" || unit == "month"):
		return errors.New("day and month are those of the calendar, one at a time: write a number of s, m, h or d for other periods")
	case every > 1:
		meant = fmt.Sprintf("%d/%d%s", count, every, unit)
	}
	return errMeant(text, meant)
}
