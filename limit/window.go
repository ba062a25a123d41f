package limit

import (
	"time"

	"github.com/limitgate/limitgate/limit/bucket"
)

// Window returns the period of the limit's rate, 24 hours for a calendar day and 30 days for a month.
// It is 0 for slots.
func (l *Limit) Window() time.Duration {
	const day = 24 * time.Hour
	switch {
	case l.Params.Algorithm == bucket.AlgorithmConcurrency:
		return 0
	case l.Rate.Calendar == bucket.CalendarDay:
		return day
	case l.Rate.Calendar == bucket.CalendarMonth:
		return 30 * day
	}
	return time.Duration(l.Rate.Period) * time.Microsecond
}
