package limit

import "time"

// DecisionTime is the time of a decision and its deadline.
type DecisionTime struct {
	Now     int64 // microseconds since the Unix epoch
	Start   time.Time
	Timeout time.Duration
}

// Deadline returns the instant by which the decision must be made.
func (m *DecisionTime) Deadline() time.Time { return m.Start.Add(m.Timeout) }

// clockSlack is how far, in microseconds, decisions may be out of order. A larger
// difference means that the clock was set back.
const clockSlack = 1_000_000

// Monotonic returns the time in microseconds at which a decision of now is made, where
// last is the time of the latest one, and updates last. A decision takes its time before
// it takes the lock, so that it may get the lock before an earlier one: both are made at
// the later time. The caller holds the lock.
func Monotonic(last *int64, now int64) int64 {
	if behind := *last - now; behind <= 0 || behind >= clockSlack {
		*last = now
	}
	return *last
}
