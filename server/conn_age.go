package server

import (
	"math/rand/v2"
	"time"
)

// quietGrace is how long nothing may arrive on an old connection before it is closed:
// enough to read what is there, and short enough for a client that asks without a
// pause.
const quietGrace = 100 * time.Microsecond

// ageSpread is the part of MaxAge by which connections may live longer.
const ageSpread = 10

// retirement returns when a connection that began at an instant is old, or zero.
func (o *Options) retirement(begun time.Time) time.Time {
	if o.MaxAge == 0 {
		return time.Time{}
	}
	return begun.Add(o.MaxAge + rand.N(o.MaxAge/ageSpread+1))
}

// isPast reports whether an instant, unless it is zero, has come.
func isPast(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
