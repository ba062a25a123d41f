package server

import (
	"math/rand/v2"
	"sync/atomic"
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

// authentication is the state of a client that must authenticate. It is safe for concurrent
// use.
type authentication struct {
	required bool
	// since is when the connection began, or lost its authentication, in nanoseconds since
	// the Unix epoch; 0 while the client is authenticated.
	since atomic.Int64
}

func (a *authentication) init(o *Options) {
	a.required = o.RequireAuth
	a.since.Store(time.Now().UnixNano())
}

// set is Peer.SetAuthenticated.
func (a *authentication) set(yes bool) {
	if yes {
		a.since.Store(0)
		return
	}
	a.since.CompareAndSwap(0, time.Now().UnixNano())
}

// missing reports whether the client has yet to authenticate.
func (a *authentication) missing() bool { return a.required && a.since.Load() != 0 }

// deadline returns the time until which the client must have authenticated, or zero if it
// need not: clients without a password must not hold connections that others need.
func (a *authentication) deadline(o *Options) time.Time {
	since := a.since.Load()
	if !a.required || since == 0 {
		return time.Time{}
	}
	return time.Unix(0, since).Add(o.RequestTimeout)
}

// isPast reports whether at is non-zero and not after now.
func isPast(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }
