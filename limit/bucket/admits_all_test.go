package bucket

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// A bucket that admits all of another one denies no request that the other has admitted.
func TestAdmitsAllOf(t *testing.T) {
	known := 0
	rapid.Check(t, func(t *rapid.T) {
		before, p := smallParams(t, "before"), smallParams(t, "p")
		if !p.AdmitsAllOf(&before) {
			return
		}
		known++
		calendar := NewCalendar(CalendarDay, time.UTC)
		first, second := &bucketOf{p: &before, calendar: calendar}, &bucketOf{p: &p, calendar: calendar}
		now := testEpoch + rapid.Int64Range(0, 2*before.Period).Draw(t, "start")
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			now += rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, before.Period/max(1, before.Count)), rapid.Int64Range(0, 2*before.Period)).Draw(t, "forward")
			cost := rapid.OneOf(rapid.Just(int64(1)), rapid.Int64Range(1, before.Capacity)).Draw(t, "cost")
			if first.take(now, cost) && !second.take(now, cost) {
				t.Fatalf("%+v denies %d units at %d, which %+v has admitted", p, cost, now, before)
			}
		}
	})
	if known == 0 {
		t.Error("no pair was compared")
	}
}

// Pairs at the edge: one unit more or less, and they are no longer the same.
func TestAdmitsAllOfAtTheEdge(t *testing.T) {
	const minute, hour = 60e6, 3600e6
	bucket := func(capacity, count, period int64) Params {
		return Params{Algorithm: AlgorithmTokenBucket, Count: count, Period: period, Capacity: capacity}
	}
	window := func(a Algorithm, capacity, period int64) Params {
		return Params{Algorithm: a, Count: capacity, Period: period, Capacity: capacity}
	}
	for name, c := range map[string]struct {
		p, before Params
		want      bool
	}{
		"a window as large as burst and refill": {window(AlgorithmFixedWindow, 610, hour), bucket(10, 10, minute), true},
		"a window that is one unit smaller":     {window(AlgorithmFixedWindow, 609, hour), bucket(10, 10, minute), false},
		"a log as large as burst and refill":    {window(AlgorithmSlidingLog, 610, hour), bucket(10, 10, minute), true},
		"a month behind a minute":               {window(AlgorithmCalendarWindow, 1e6, 31*24*hour), bucket(10, 10, minute), true},
		"a month that fills in a week":          {window(AlgorithmCalendarWindow, 1e5, 31*24*hour), bucket(10, 10, minute), false},
		"a month behind days":                   {window(AlgorithmCalendarWindow, 50_000, 31*24*hour+hour), window(AlgorithmCalendarWindow, 1000, 25*hour), true},
		"a month that 31 days fill":             {window(AlgorithmCalendarWindow, 30_000, 31*24*hour+hour), window(AlgorithmCalendarWindow, 1000, 25*hour), false},
		"a bucket of two windows":               {bucket(20, 10, minute), window(AlgorithmFixedWindow, 10, minute), true},
		"a bucket of less than two windows":     {bucket(19, 10, minute), window(AlgorithmFixedWindow, 10, minute), false},
		"a bucket that refills too slowly":      {bucket(20, 9, minute), window(AlgorithmFixedWindow, 10, minute), false},
		"a window that is approximate":          {window(AlgorithmSlidingWindow, 1e6, hour), bucket(10, 10, minute), false},
		"behind one that is approximate":        {window(AlgorithmFixedWindow, 1e6, hour), window(AlgorithmSlidingWindow, 10, minute), false},
		"the largest numbers":                   {window(AlgorithmFixedWindow, MaxCapacity, MaxPeriod), bucket(MaxCapacity, MaxCapacity, 1), false},
	} {
		if got := c.p.AdmitsAllOf(&c.before); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// smallParams draws limits of all algorithms whose numbers are near each other.
func smallParams(t *rapid.T, label string) Params {
	p := Params{
		Algorithm: rapid.SampledFrom([]Algorithm{AlgorithmTokenBucket, AlgorithmFixedWindow, AlgorithmCalendarWindow, AlgorithmSlidingLog}).Draw(t, label),
		Count:     rapid.Int64Range(1, 20).Draw(t, "count"),
		Period:    1e6 * rapid.Int64Range(1, 90).Draw(t, "period"),
	}
	p.Capacity = p.Count
	switch p.Algorithm {
	case AlgorithmTokenBucket:
		p.Capacity = rapid.Int64Range(1, 60).Draw(t, "burst")
	case AlgorithmCalendarWindow:
		p.Period = 25 * 3600e6
		p.Count = rapid.OneOf(rapid.Int64Range(1, 20), rapid.Int64Range(1, 1e6)).Draw(t, "quota")
		p.Capacity = p.Count
	}
	return p
}

// bucketOf takes units from a bucket of any algorithm.
type bucketOf struct {
	p        *Params
	calendar *Calendar
	state    State
	log      UnitLog
}

func (b *bucketOf) take(now, cost int64) bool {
	if b.p.Algorithm == AlgorithmSlidingLog {
		live := b.log.live(b.p, now)
		used := int64(0)
		for _, u := range live {
			used += u.n
		}
		if used+cost > b.p.Capacity {
			return false
		}
		b.log.units = append(b.log.units, unit{at: now, n: cost})
		return true
	}
	next := b.state
	v, _, ok := Decide(b.p, b.calendar.Bounds(now), &next, now, cost)
	if !ok || !v.Allowed {
		return false
	}
	b.state = next
	return true
}
