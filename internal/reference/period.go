package reference

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	_ "time/tzdata" // the same zones on every machine
)

// Durations in microseconds.
const (
	millisecond int64 = 1_000
	second            = 1_000 * millisecond
)

var unitLengths = map[string]int64{
	"s": second,
	"m": 60 * second,
	"h": 3600 * second,
	"d": 86400 * second,
}

// period is the PERIOD of a rate.
type period struct {
	// length is in microseconds, 0 for a calendar period.
	length int64
	// calendar is day or month.
	calendar string
	zone     *time.Location
}

// parseRate parses COUNT/PERIOD. Only a calendar period has the timezone.
func parseRate(rate, timezone string) (count int64, p period, err error) {
	number, text, found := strings.Cut(rate, "/")
	if !found {
		return 0, p, fmt.Errorf("read rate %q: want COUNT/PERIOD", rate)
	}
	if count, err = strconv.ParseInt(number, 10, 64); err != nil {
		return 0, p, fmt.Errorf("read rate %q: %w", rate, err)
	}
	if text == "day" || text == "month" {
		zone, err := time.LoadLocation(timezone) // UTC for ""
		if err != nil {
			return 0, p, fmt.Errorf("load timezone: %w", err)
		}
		return count, period{calendar: text, zone: zone}, nil
	}
	for unit, length := range unitLengths {
		times, found := strings.CutSuffix(text, unit)
		if !found {
			continue
		}
		if times == "" {
			times = "1"
		}
		n, err := strconv.ParseInt(times, 10, 64)
		if err != nil {
			return 0, p, fmt.Errorf("read rate %q: %w", rate, err)
		}
		return count, period{length: n * length}, nil
	}
	return 0, p, fmt.Errorf("read rate %q: no such period", rate)
}

// same reports whether two periods have the same windows.
//
// Not documented: another timezone makes another period.
func (p period) same(q period) bool {
	return p.length == q.length && p.calendar == q.calendar && p.zone.String() == q.zone.String()
}

// window returns the window that contains an instant: it begins at start, and end is the
// first instant of the next one. Windows are aligned to the epoch, calendar windows to
// local midnight.
func (p period) window(now int64) (start, end int64) {
	if p.calendar == "" {
		start = now - now%p.length
		return start, start + p.length
	}
	year, month, day := time.UnixMicro(now).In(p.zone).Date()
	if p.calendar == "month" {
		return p.begin(year, month, 1), p.begin(year, month+1, 1)
	}
	return p.begin(year, month, day), p.begin(year, month, day+1)
}

// begin returns the first instant of a day in the zone. It is not always midnight: some
// zones skip that hour when their clocks go forward.
func (p period) begin(year int, month time.Month, day int) int64 {
	midnight := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	first := midnight.Add(-26 * time.Hour).Unix()
	n := sort.Search(52*3600, func(n int) bool {
		y, m, d := time.Unix(first+int64(n), 0).In(p.zone).Date()
		return !time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Before(midnight)
	})
	return (first + int64(n)) * second
}
