package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// formError describes a text that does not have the form of a value. It receives a value to name as an example.
type formError func(example string) string

func (e formError) Error() string { return e("") }

// read parses a value. The error of a text of another form has an example.
func (r *setting) read(text string) error {
	err := r.value.read(text)
	if form := formError(nil); errors.As(err, &form) {
		return errors.New(form(cmp.Or(r.example, r.initial)))
	}
	return err
}

// NotDuration returns what is wrong with a text that package time does not read as a duration, and the duration
// that it most likely means. Where that is not known, or longer than most, it names the example.
func NotDuration(text, example string, most time.Duration) string {
	meant, reason := meantDuration(text)
	if meant > most {
		meant = 0
	}
	switch {
	case reason == "":
		return fmt.Sprintf("%s is not a duration; write it with a unit, for example %s", Quote(text), example)
	case meant == 0:
		return fmt.Sprintf("%s is not a duration: %s; write for example %s", Quote(text), reason, example)
	}
	return fmt.Sprintf("%s is not a duration: %s; write %s", Quote(text), reason, ShowDuration(meant))
}

// The reasons why a number with a unit is not a duration.
const (
	dayIsHours  = "its units are h, m and s, and a day is 24h"
	unitsAre    = "its units are h, m, s and ms"
	lastUnitOff = "its last number has no unit"
)

// meantUnits are the units of durations by names that are in use.
var meantUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "us": time.Microsecond, "µs": time.Microsecond,
	"ms": time.Millisecond, "msec": time.Millisecond, "msecs": time.Millisecond, "millis": time.Millisecond,
	"millisecond": time.Millisecond, "milliseconds": time.Millisecond,
	"s": time.Second, "sec": time.Second, "secs": time.Second, "second": time.Second, "seconds": time.Second,
	"m": time.Minute, "min": time.Minute, "mins": time.Minute, "minute": time.Minute, "minutes": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hrs": time.Hour, "hour": time.Hour, "hours": time.Hour,
	"d": day, "day": day, "days": day,
	"w": 7 * day, "wk": 7 * day, "week": 7 * day, "weeks": 7 * day,
}

const day = 24 * time.Hour

// smaller are the units of a number without one, behind a number with a larger unit: 1m30 is 1m30s.
var smaller = map[time.Duration]time.Duration{day: time.Hour, time.Hour: time.Minute, time.Minute: time.Second}

var (
	durationPart  = regexp.MustCompile(`([0-9]{1,9}(?:\.[0-9]{1,9})?) *(\pL*) *`)
	durationParts = regexp.MustCompile(`^ *(?:` + durationPart.String() + `)+$`)
)

// meantDuration returns the duration that a text most likely means, or 0, and the reason why it is none. The
// reason is "" for a text that is not a number with a unit.
func meantDuration(text string) (meant time.Duration, reason string) {
	if !durationParts.MatchString(text) {
		return 0, ""
	}
	reason = unitsAre
	var sum float64
	var last time.Duration
	for _, part := range durationPart.FindAllStringSubmatch(text, -1) {
		unit, known := meantUnits[part[2]]
		switch {
		case part[2] == "" && last == 0:
			return 0, "" // a bare number
		case part[2] == "" && smaller[last] != 0:
			unit, reason = smaller[last], lastUnitOff
		case part[2] == "":
			return 0, lastUnitOff
		case !known && (strings.HasPrefix(part[2], "mo") || strings.HasPrefix(part[2], "y")):
			return 0, dayIsHours
		case !known:
			return 0, unitsAre
		case unit >= day:
			reason = dayIsHours
		}
		number, _ := strconv.ParseFloat(part[1], 64)
		sum, last = sum+number*float64(unit), unit
	}
	if sum >= math.MaxInt64 {
		return 0, reason
	}
	return time.Duration(sum), reason
}

// NotWhole returns what is wrong with a text that is no whole number. It names the number that the text most
// likely means if that is from least to most, and the example otherwise.
func NotWhole(text, example string, least, most int) string {
	if meant := limit.MeantNumber(text); meant > 0 && meant >= int64(least) && meant <= int64(most) {
		example = strconv.FormatInt(meant, 10)
	}
	return fmt.Sprintf("%s is not a whole number; write it in digits only, for example %s", Quote(text), example)
}
