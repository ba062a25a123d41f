package controlplane

import (
	"time"

	"github.com/limitgate/limitgate/internal/logthrottle"
)

// failureEvery is the least time between two log lines of one component about failures
// that repeat: a component retries every second or so while AWS refuses it.
const failureEvery = time.Minute

// failures decides which failures of one component are logged. One goroutine may use
// it.
type failures struct {
	lines logthrottle.Throttle
	since int // failures since the latest log line
}

// due counts a failure unless err is nil. It returns the number of failures since the
// latest log line if another line is due, or else 0.
func (f *failures) due(err error) int {
	if err == nil {
		return 0
	}
	return f.count()
}

// count counts a failure, and returns what due returns.
func (f *failures) count() int {
	f.since++
	f.lines.Period = failureEvery // so that the zero value is ready
	if !f.lines.Allow() {
		return 0
	}
	n := f.since
	f.since = 0
	return n
}
