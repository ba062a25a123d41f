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
	// Instances returns how many proxies share the limits, for the size of leases. Values
	// below 1 count as 1, and so does nil.
	Instances func() int
}

// New returns a limiter that decides by set.
func New(opts Options, set *limit.Set) *Limiter {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if opts.Instances == nil {
		opts.Instances = func() int { return 1 }
	}
	if opts.DenyTTL <= 0 {
		opts.DenyTTL = DefaultDenyTTL
	}
	l := &Limiter{
		opts: opts, retries: newRetryScheduler(opts.RetryJitter, opts.Random, opts.Instances),
		deny: newDenyCache(opts.DenyCacheSize, opts.DenyTTL), leases: newLeases(opts.Instances), epoch: opts.Now().Add(-time.Hour),
	}
	if l.deny == nil && !opts.ObserveItems {
		l.fast, _ = opts.Store.(FastStore)
	}
	l.set.Store(set)
	l.top.every.Store(1)
	return l
}

// instant returns t in microseconds of the monotonic clock, for the deny cache and the
// leases.
func (l *Limiter) instant(t time.Time) int64 { return t.Sub(l.epoch).Microseconds() }

// SetLimits makes later decisions use set. Units that are leased under the old limits are
// returned to the store.
func (l *Limiter) SetLimits(set *limit.Set) {
	l.set.Store(set)
	select {
	case l.leases.changed <- struct{}{}:
	default:
	}
}

// LeaseRefreshes returns how often the store has granted units for a lease.
func (l *Limiter) LeaseRefreshes() int64 { return l.leases.refreshes.Load() }

// Limits returns the set in use.
func (l *Limiter) Limits() *limit.Set { return l.set.Load() }
