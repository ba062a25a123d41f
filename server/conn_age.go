package server

import (
	"math/rand/v2"
	"time"
)

// quietGrace is the time without input after which a connection of maximum age is closed:
// long enough to read pending input, and short enough for a client that sends commands
// without a pause.
const quietGrace = 100 * time.Microsecond

// ageSpread is the fraction (1/ageSpread) of MaxAge by which the age limit of a
// connection is randomly extended.
const ageSpread = 10

// retirement returns when a connection that began at begun reaches its maximum age, or
// zero if it never does.
func (o *Options) retirement(begun time.Time) time.Time {
	if o.MaxAge == 0 {
		return time.Time{}
	}
	return begun.Add(o.MaxAge + rand.N(o.MaxAge/ageSpread+1))
}

// isPast reports whether at is non-zero and not after now.
func isPast(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
