package controlplane

import "time"

// failureEvery is the least time between two log lines of one part about failures that repeat: a
// part tries again every second or so for as long as AWS refuses it.
const failureEvery = time.Minute

// failures logs the failures of one part. One goroutine may use it.
type failures struct {
	logged time.Time
	since  int // failures since then
}

// due counts a failure, and returns how many there were since the last line if another one is due, or
// 0.
func (f *failures) due() int {
	f.since++
	now := time.Now()
	if !f.logged.IsZero() && now.Sub(f.logged) < failureEvery {
		return 0
	}
	n := f.since
	f.logged, f.since = now, 0
	return n
}
