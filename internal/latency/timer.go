package latency

import "time"

// Interval is the shortest time between two runs that one Timer times. A decision in memory takes
// less than a microsecond, of which reading the clock for each would be a large part.
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
