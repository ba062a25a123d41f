// Package logthrottle bounds how often a line is logged, so that trouble that repeats does not flood
// the log.
package logthrottle

import (
	"sync"
	"time"
)

// Throttle allows a number of lines in a period, which begins with the first of them. Its exported
// fields are set before its first use, and it must not be copied after that. It is safe for concurrent
// use.
type Throttle struct {
	Period time.Duration
	// Lines is how many lines a period may have; 0 means one.
	Lines int
	// Now returns the time; nil means time.Now.
	Now func() time.Time

	mu    sync.Mutex // guards the fields below
	since time.Time  // when the present period began
	used  int        // the lines since then
}

// Allow reports whether a line may be logged, and counts it if so. A clock that was set back begins a
// period.
func (t *Throttle) Allow() bool {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.since) >= t.Period || now.Before(t.since) {
		t.since, t.used = now, 0
	}
	if t.used >= max(t.Lines, 1) {
		return false
	}
	t.used++
	return true
}

// Used reports whether the period has all of its lines.
func (t *Throttle) Used() bool {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used >= max(t.Lines, 1) && now.Sub(t.since) < t.Period
}

// Reset begins a period: the trouble is over, and what comes next is new.
func (t *Throttle) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.since, t.used = time.Time{}, 0
}

func (t *Throttle) now() time.Time {
	if t.Now == nil {
		return time.Now()
	}
	return t.Now()
}
