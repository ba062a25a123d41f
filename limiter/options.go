package limiter

import (
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Options configure a Limiter.
type Options struct {
	Store    Store
	Backstop Backstop // may be nil for a store that decides everything
	Observer Observer // may be nil
	// ObserveItems reports that the observer needs the items of every request. Otherwise
	// it may get none of a request whose limits all are enforced and do not warn.
	ObserveItems bool
	Addrs        *limit.AddrHasher
	// Timeout bounds the whole decision, from the call of Decide or Start.
	Timeout time.Duration
	// RetryJitter is the largest jitter on a retry_after, counted in whole
	// milliseconds; 0 means none.
	RetryJitter time.Duration
	// Random returns a number from 0 up to 1 for the jitter, on any goroutine; nil means
	// a source that differs between processes.
	Random func() float64
	// Now returns the time; nil means the clock of this machine.
	Now func() time.Time
	// DenyCacheSize is how many denials of the store are cached; 0 means none.
	DenyCacheSize int
	// DenyTTL is the longest time that a denial is cached; 0 means DefaultDenyTTL.
	DenyTTL time.Duration
	// Trial receives every request that limits on trial have decided, see limit.Set.Try,
	// on any goroutine; it may be nil. The request is valid until Trial returns.
	Trial func(set *limit.Set, req *limit.Request)
	// Unlisted receives the tenants of requests that the limits do not list, on any
	// goroutine. It must not block, and may be nil. The name is valid until Unlisted
	// returns.
	Unlisted func(tenant string)
	// Sample receives some requests: all of them, or, if there are more than some thousand a second, a
	// part. It is called on any goroutine, must not block, and may be nil. The request is valid until
	// Sample returns.
	Sample func(req *limit.Request)
	// Instances returns how many proxies share the limits, for the size of leases. Values
	// below 1 count as 1, and so does nil.
	Instances func() int
}
