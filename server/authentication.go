package server

import (
	"sync/atomic"
	"time"
)

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
