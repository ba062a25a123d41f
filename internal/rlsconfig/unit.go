package rlsconfig

import "strings"

// Unit is the unit of time of a limit. Its numbers are those of Unit of Envoy's
// RateLimitResponse.RateLimit, and of the configuration in xDS.
type Unit uint8

// The units. An unlimited policy has UnitUnknown.
const (
	UnitUnknown Unit = iota
	UnitSecond
	UnitMinute
	UnitHour
	UnitDay
	UnitMonth
	UnitYear
	UnitWeek
)

const day = 24 * 60 * 60

// units are the names and the seconds of the units. A month and a year do not follow the
// calendar.
var units = [...]struct {
	name    string
	seconds int64
}{
	UnitUnknown: {"UNKNOWN", 0},
	UnitSecond:  {"SECOND", 1},
	UnitMinute:  {"MINUTE", 60},
	UnitHour:    {"HOUR", 60 * 60},
	UnitDay:     {"DAY", day},
	UnitMonth:   {"MONTH", 30 * day},
	UnitYear:    {"YEAR", 365 * day},
	UnitWeek:    {"WEEK", 7 * day},
}

// unitNames are the words for units in files.
var unitNames = []string{"second", "minute", "hour", "day", "week", "month", "year"}

// String returns the name of the unit in Envoy's protocol, such as HOUR.
func (u Unit) String() string { return units[u].name }

// Seconds returns the length of the unit, and 0 for UnitUnknown.
func (u Unit) Seconds() int64 { return units[u].seconds }

// parseUnit returns the unit of a name in any case, or UnitUnknown.
func parseUnit(name string) Unit {
	for u := range units {
		if strings.EqualFold(units[u].name, name) {
			return Unit(u)
		}
	}
	return UnitUnknown
}
