package bucket

import (
	"testing"
	"time"
	_ "time/tzdata"
)

func zone(tb testing.TB, name string) *time.Location {
	tb.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		tb.Fatal(err)
	}
	return z
}

// TestCalendarDays checks days of 23, 24 and 25 hours, and one without a midnight.
func TestCalendarDays(t *testing.T) {
	for _, c := range []struct {
		zone, at  string
		wantStart string
		wantHours float64
	}{
		{"UTC", "2026-03-29T12:00:00Z", "2026-03-29T00:00:00Z", 24},
		{"Europe/Berlin", "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", 23},
		{"Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", 25},
		{"Europe/Berlin", "2026-10-25T22:59:59Z", "2026-10-24T22:00:00Z", 25},
		{"Europe/Berlin", "2026-10-25T23:00:00Z", "2026-10-25T23:00:00Z", 24},
		{"America/Sao_Paulo", "2018-11-04T12:00:00Z", "2018-11-04T03:00:00Z", 23}, // midnight was skipped
		{"America/Havana", "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", 23},    // midnight is skipped
		{"America/Havana", "2026-11-01T12:00:00Z", "2026-11-01T04:00:00Z", 25},    // midnight comes once, the hour after it twice
	} {
		cal := NewCalendar(CalendarDay, zone(t, c.zone))
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		b := cal.Bounds(at.UnixMicro())
		if start := time.UnixMicro(b[1]).UTC().Format(time.RFC3339); start != c.wantStart {
			t.Errorf("%s %s: the day begins %s, want %s", c.zone, c.at, start, c.wantStart)
		}
		if hours := float64(b[2]-b[1]) / 3600e6; hours != c.wantHours {
			t.Errorf("%s %s: the day has %v hours, want %v", c.zone, c.at, hours, c.wantHours)
		}
	}
}

// TestCalendarBoundsFit walks in steps through years of several zones: the instant always
// lies in the middle window, and windows follow each other. (Samoa had no 30 December
// 2011: that window is empty.)
func TestCalendarBoundsFit(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "America/Havana", "Asia/Beirut", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Cairo", "America/Toronto"} {
		for _, unit := range []CalendarUnit{CalendarDay, CalendarMonth} {
			z := zone(t, name)
			var last *Bounds
			for at := time.Date(2010, 12, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2014; at = at.Add(47 * time.Minute) {
				b := NewCalendar(unit, z).Bounds(at.UnixMicro())
				now := at.UnixMicro()
				if now < b[1] || now >= b[2] || b[0] > b[1] || b[2] > b[3] {
					t.Fatalf("%s: %s does not lie in the middle of %v", name, at, b)
				}
				if last != nil && b[1] != last[1] && b[1] != last[2] {
					t.Fatalf("%s: the window of %s begins at %d, but the last one ended at %d", name, at, b[1], last[2])
				}
				if b.width() > 32*86400e6 {
					t.Fatalf("%s: a window of %d us", name, b.width())
				}
				last = b
			}
		}
	}
}

func (b *Bounds) width() int64 { return b[2] - b[1] }
