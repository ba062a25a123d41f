package logthrottle

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// clock is a clock that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

// TestAllow checks which lines of a period are allowed, at its end too.
func TestAllow(t *testing.T) {
	const s = time.Second
	for name, row := range map[string]struct {
		lines int
		steps []time.Duration // before each line
		want  []bool
	}{
		"one":               {0, []time.Duration{0, 0, 59 * s, s, 59 * s, s - 1, 1}, []bool{true, false, false, true, false, false, true}},
		"one, named":        {1, []time.Duration{0, 0, 60 * s}, []bool{true, false, true}},
		"three":             {3, []time.Duration{0, 20 * s, 39 * s, 0, s - 1, 1, 0, 0, 0}, []bool{true, true, true, false, false, true, true, true, false}},
		"a clock set back":  {1, []time.Duration{0, -s, 0, 59 * s, s}, []bool{true, true, false, false, true}},
		"refused, no start": {1, []time.Duration{0, 40 * s, 20 * s}, []bool{true, false, true}},
	} {
		c := &clock{time.Unix(1_700_000_000, 0)}
		throttle := Throttle{Period: time.Minute, Lines: row.lines, Now: c.now}
		var got []bool
		for _, step := range row.steps {
			c.at = c.at.Add(step)
			got = append(got, throttle.Allow())
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%s: got %v, want %v", name, got, row.want)
		}
	}
}

// TestReset checks that a reset allows as many lines as a new period.
func TestReset(t *testing.T) {
	c := &clock{time.Unix(1_700_000_000, 0)}
	throttle := Throttle{Period: time.Minute, Lines: 2, Now: c.now}
	for round := range 2 {
		for line, want := range []bool{true, true, false} {
			if throttle.Allow() != want {
				t.Errorf("round %d: line %d is allowed: %t, want %t", round, line, !want, want)
			}
		}
		throttle.Reset()
	}
}

// TestOwnClock checks that a throttle without a clock uses that of the machine.
func TestOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		throttle := Throttle{Period: time.Minute}
		if !throttle.Allow() || throttle.Allow() {
			t.Error("not one line at the start")
		}
		time.Sleep(time.Minute)
		if !throttle.Allow() {
			t.Error("no line after the period")
		}
	})
}

// TestConcurrent checks that callers at the same time get no more lines than one after the other.
func TestConcurrent(t *testing.T) {
	throttle := Throttle{Period: time.Hour, Lines: 10}
	var all sync.WaitGroup
	var allowed atomic.Int64
	for range 8 {
		all.Go(func() {
			for range 100 {
				if throttle.Allow() {
					allowed.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := allowed.Load(); n != 10 {
		t.Errorf("%d lines, want 10", n)
	}
}
