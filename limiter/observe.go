package limiter

import "github.com/limitgate/limitgate/limit"

// observeTrial reports a request that limits on trial have decided.
func (l *Limiter) observeTrial(set *limit.Set, req *limit.Request) {
	if next, share := set.Trial(); next != nil && l.opts.Trial != nil && limit.InTrial(req.Tenant, share) {
		l.opts.Trial(set, req)
	}
}

// observeUnlisted reports a tenant that the limits do not list.
func (l *Limiter) observeUnlisted(set *limit.Set, req *limit.Request) {
	if l.opts.Unlisted != nil && !req.CarriesLimits() && !set.Lists(req.Tenant) {
		l.opts.Unlisted(req.Tenant)
	}
}
