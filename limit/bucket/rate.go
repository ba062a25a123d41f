package bucket

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The accepted range of numbers. Within it every intermediate result of the
// algorithms stays below 2^52, where Lua's numbers and Go's agree to the unit.
const (
	// MaxCost is the largest cost of one request, in units.
	MaxCost = 1<<31 - 1
	// MaxCapacity is the largest COUNT and the largest burst, in units.
	MaxCapacity = 1 << 40
	// MaxPeriod is the longest PERIOD, in microseconds.
	MaxPeriod = 366 * 24 * int64(time.Hour/time.Microsecond)
	// MaxFullTime bounds the time an empty bucket takes to fill, in
	// microseconds: about 35 years.
	MaxFullTime = 1 << 50
)

// CalendarUnit is the unit of a calendar window.
type CalendarUnit uint8

// The calendar units.
const (
	NotCalendar CalendarUnit = iota
	CalendarDay
	CalendarMonth
)

// Rate is COUNT/PERIOD as in a limits file.
type Rate struct {
	Count    int64 // units, 1 to MaxCapacity
	Period   int64 // microseconds, 1 s to MaxPeriod; the longest window of calendar units
	Calendar CalendarUnit
	Text     string // as written
}

var errRateForm = errors.New(`a rate is COUNT/PERIOD, where COUNT is a whole number above zero and PERIOD is s, m, h, d, day, month or a number of s, m, h, d: for example 100/s, 5/15m or 1000000/month`)

var periodUnits = map[byte]int64{'s': 1e6, 'm': 60e6, 'h': 3600e6, 'd': 86400e6}

// ParseRate reads COUNT/PERIOD.
func ParseRate(text string) (Rate, error) {
	count, period, found := strings.Cut(text, "/")
	if !found || count == "" || period == "" {
		return Rate{}, rateForm(text)
	}
	r := Rate{Text: text}
	var err error
	if r.Count, err = ParseDigits(count); err != nil && !errors.Is(err, strconv.ErrRange) { // beyond the range it is the largest
		return Rate{}, rateForm(text)
	}
	if r.Count == 0 {
		return Rate{}, errors.New("a rate of zero admits nothing: to refuse, say action: deny instead of a rate")
	}
	if r.Count > MaxCapacity {
		return Rate{}, fmt.Errorf("COUNT is too large: the largest that can be counted exactly is %d", int64(MaxCapacity))
	}
	return r, r.parsePeriod(period)
}

// shortPeriods are the names of periods that people write in place of units.
var shortPeriods = map[string]string{
	"sec": "s", "second": "s", "seconds": "s", "min": "m", "minute": "m", "minutes": "m", "hour": "h", "hours": "h", "days": "d",
	"week": "7d", "year": "365d", "y": "365d", "yr": "365d", "years": "365d", "mo": "month", "mon": "month", "months": "month",
}

func (r *Rate) parsePeriod(period string) error {
	switch period {
	case "day":
		r.Calendar, r.Period = CalendarDay, 25*periodUnits['h']
		return nil
	case "month":
		r.Calendar, r.Period = CalendarMonth, 31*periodUnits['d']+periodUnits['h']
		return nil
	}
	unit, ok := periodUnits[period[len(period)-1]]
	if short := shortPeriods[period]; short != "" {
		return fmt.Errorf("%s is written %s: %d/%s", period, short, r.Count, short)
	}
	if !ok {
		return rateForm(r.Text)
	}
	n := int64(1)
	if digits := period[:len(period)-1]; digits != "" {
		var err error
		if n, err = ParseDigits(digits); err != nil && !errors.Is(err, strconv.ErrRange) || n == 0 {
			return rateForm(r.Text)
		}
	}
	if n > MaxPeriod/unit {
		return errors.New("PERIOD is too long: the longest is 366d")
	}
	r.Period = n * unit
	return nil
}

// ParseDigits reads a whole number without a sign. One beyond the range is the largest, with strconv.ErrRange.
func ParseDigits(s string) (int64, error) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, strconv.ErrSyntax
		}
	}
	return strconv.ParseInt(s, 10, 64)
}

// Params compiles a rate for an algorithm. It rejects numbers that cannot be counted
// exactly, with the largest that can.
func (r *Rate) Params(a Algorithm, burst int64) (Params, error) {
	p := Params{Algorithm: a, Count: r.Count, Period: r.Period, Capacity: burst}
	if a == AlgorithmSlidingLog && burst > MaxLogUnits {
		return p, fmt.Errorf("a sliding_log keeps every unit by itself, at most %d: lower COUNT, or choose sliding_window", MaxLogUnits)
	}
	if a != AlgorithmTokenBucket {
		return p, nil
	}
	g := gcd(p.Count, p.Period)
	p.Count, p.Period = p.Count/g, p.Period/g
	if largest := MulDivAtMost(MaxFullTime, p.Count, p.Period, MaxCapacity); p.Capacity > largest {
		return p, &BurstError{Burst: burst, Rate: r.Text, Largest: largest}
	}
	return p, nil
}

// BurstError is the error for a bucket that fills too slowly to be counted exactly, see MaxFullTime.
type BurstError struct {
	Burst   int64  // in units
	Rate    string // at which it fills, as written
	Largest int64  // burst at this rate
}

func (e *BurstError) Error() string {
	return fmt.Sprintf("a bucket of %d units at %s would take more than 35 years to fill: the largest burst that can be counted exactly is %d", e.Burst, e.Rate, e.Largest)
}

// FullTime returns the microseconds in which an empty bucket fills, or after which a used
// window no longer counts.
func (p *Params) FullTime() int64 {
	switch p.Algorithm {
	case AlgorithmTokenBucket:
		return mulDivCeil(p.Capacity, p.Period, p.Count)
	case AlgorithmSlidingWindow:
		return 2 * p.Period
	default:
		return p.Period
	}
}

// RefillTime returns the microseconds in which the limit refills units, at most
// MaxPeriod.
func (p *Params) RefillTime(units int64) int64 {
	return MulDivAtMost(units, p.Period, p.Count, MaxPeriod)
}

// Granule returns the slack in microseconds of the expiry of a token bucket's key. The
// expiry is set to the end of the granule in which the bucket is full again, so that most
// calls need not set it again.
func (p *Params) Granule() int64 {
	const second = 1e6
	return max(second, p.FullTime()/8/second*second)
}

// Most returns how many units a bucket of a limit can admit at most in t microseconds.
// For windows the time begins and ends with a window if windows fit into it.
func (p *Params) Most(t int64) int64 {
	if p.Algorithm == AlgorithmTokenBucket {
		return p.Capacity + MulDivAtMost(t, p.Count, p.Period, MaxCapacity)
	}
	return p.Capacity * max(1, (t+p.Period-1)/p.Period)
}
