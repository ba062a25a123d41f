package controlplane

import (
	"log/slog"
	"time"
)

// failureEvery is the least time between two log lines of one part about failures that repeat: a
// part tries again every second or so for as long as AWS refuses it.
const failureEvery = time.Minute

// failures logs the failures of one part. One goroutine may use it.
type failures struct {
	logged time.Time
	since  int // failures since then
}

// log logs a failure, with the number of those since the last line, unless that was a moment ago.
func (f *failures) log(log *slog.Logger, message string, err error) {
	f.since++
	now := time.Now()
	if !f.logged.IsZero() && now.Sub(f.logged) < failureEvery {
		return
	}
	log.Error(message, "error", err, "failures", f.since)
	f.logged, f.since = now, 0
}
