package latency

import "time"

// Interval is the shortest time between two runs that one Timer times. Reading the clock takes
// some 45 ns, which is more than a decision may cost that takes less than a microsecond.
const Interval = 100 * time.Microsecond

// Timer selects the runs of decisions whose duration is measured: all of them while there are
// few, and one in each Interval while there are many, which then counts for those in between.
// The zero value is ready. It is not safe for concurrent use.
type Timer struct{ last time.Time }

// Due reports whether a run that began at start is to be timed.
func (t *Timer) Due(start time.Time) bool {
	if since := start.Sub(t.last); since >= 0 && since < Interval {
		return false
	}
	t.last = start
	return true
}
