package limit

import "time"

// Moment is when something is decided, and until when it must be.
type Moment struct {
	Now     int64 // microseconds since the Unix epoch
	Start   time.Time
	Timeout time.Duration
}

// Deadline returns the instant by which the decision must be made.
func (m *Moment) Deadline() time.Time { return m.Start.Add(m.Timeout) }
