package bucket

import (
	"sync/atomic"
	"time"
)

// Bounds are four consecutive boundaries of calendar windows, in microseconds since the
// epoch. They make three windows: the middle one holds the proxy's time. The outer two
// exist because the store's clock decides.
type Bounds [4]int64

// window returns the window that holds now.
func (b *Bounds) window(now int64) (start, end int64, ok bool) {
	for i := range len(b) - 1 {
		if b[i] <= now && now < b[i+1] {
			return b[i], b[i+1], true
		}
	}
	return 0, 0, false
}

// Calendar divides time into days or months of one time zone. It is safe for concurrent
// use.
type Calendar struct {
	unit CalendarUnit
	zone *time.Location
	// last holds the bounds computed last; they stay valid for a day or a month.
	last atomic.Pointer[Bounds]
}

// NewCalendar returns the calendar of a zone.
func NewCalendar(unit CalendarUnit, zone *time.Location) *Calendar {
	return &Calendar{unit: unit, zone: zone}
}

// Bounds returns the boundaries around now, in microseconds since the epoch:
// now lies in the second of the three windows.
func (c *Calendar) Bounds(now int64) *Bounds {
	if b := c.last.Load(); b != nil && b[1] <= now && now < b[2] {
		return b
	}
	local := time.UnixMicro(now).In(c.zone)
	b := &Bounds{c.boundary(local, -1), c.boundary(local, 0), c.boundary(local, 1), c.boundary(local, 2)}
	c.last.Store(b)
	return b
}

// boundary returns the first instant of the day or month that lies offset after that of
// t.
func (c *Calendar) boundary(t time.Time, offset int) int64 {
	year, month, day := t.Date()
	if c.unit == CalendarMonth {
		return startOfDay(year, month+time.Month(offset), 1, c.zone).UnixMicro()
	}
	return startOfDay(year, month, day+offset, c.zone).UnixMicro()
}

// startOfDay returns the first instant of a date. Midnight may be missing, or
// come twice, where the clocks change at midnight.
func startOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	date := time.Date(year, month, day, 12, 0, 0, 0, time.UTC) // normalizes day 0 and day 32
	year, month, day = date.Date()
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	begin, end := t.ZoneBounds()
	switch got := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), 0, 0, 0, time.UTC); {
	case got.Day() != day && got.Before(date): // in a gap, mapped before it: the day begins at the end of the gap
		return end
	case got.Day() != day, t.Hour() != 0: // in a gap, mapped behind it
		return begin
	}
	// Midnight comes twice when the clocks go back over it: the first counts.
	if !begin.IsZero() {
		_, now := t.Zone()
		_, before := begin.Add(-time.Nanosecond).In(zone).Zone()
		if first := t.Add(time.Duration(now-before) * time.Second); first.Before(begin) && before > now {
			return first
		}
	}
	return t
}
