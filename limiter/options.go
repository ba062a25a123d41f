package limiter

import (
	"time"

	"github.com/limitgate/limitgate/limit"
)

// longName is the length in bytes from which a bucket's name is not kept: it is neither
// leased nor are its refusals remembered, so that what is kept is bounded in bytes.
const longName = 512

// Options configure a Limiter.
type Options struct {
	Store    Store
	Backstop Backstop // may be nil for a store that decides everything
	Observer Observer // may be nil
	Addrs    *limit.AddrHasher
	// Timeout bounds the whole decision, from the moment Decide is called.
	Timeout time.Duration
	// RetryJitter is the largest jitter on a retry_after, counted in whole
	// milliseconds; 0 means none.
	RetryJitter time.Duration
	// Random returns a number from 0 up to 1 for the jitter, on any goroutine; nil
	// means one that differs between processes.
	Random func() float64
	// Now tells the time; nil means the clock of this machine.
	Now func() time.Time
	// DenyCacheSize is how many refusals of the store are remembered; 0 for none.
	DenyCacheSize int
	// DenyTTL is how long at most; 0 means DefaultDenyTTL.
	DenyTTL time.Duration
	// Trial is told every request that limits on trial have decided, see limit.Set.Try, on
	// any goroutine; it may be nil. The request is valid until it returns.
	Trial func(set *limit.Set, req *limit.Request)
	// Unlisted is told the tenants of requests that the limits do not list, on any
	// goroutine; it must not wait, and may be nil. The name is valid until it returns.
	Unlisted func(tenant string)
	// Instances returns how many proxies share the limits, for the size of leases;
	// what is below 1 counts as 1, and so does nil.
	Instances func() int
}
