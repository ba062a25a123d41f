package controlplane

import "time"

// failureEvery is the least time between two log lines of one part about failures that repeat: a
// part tries again every second or so for as long as AWS refuses it.
const failureEvery = time.Minute

// failures decides which failures of one part are logged. One goroutine may use it.
type failures struct {
	logged time.Time
	since  int // failures since then
}

// due returns how many failures there were since the latest log line if err is one of them and
// another line is due, or 0.
func (f *failures) due(err error) int {
	if err == nil {
		return 0
	}
	f.since++
	now := time.Now()
	if !f.logged.IsZero() && now.Sub(f.logged) < failureEvery {
		return 0
	}
	n := f.since
	f.logged, f.since = now, 0
	return n
}
