package limiter

import "github.com/limitgate/limitgate/limit"

// observeTrial reports the requests that limits on trial have decided.
func (l *Limiter) observeTrial(b *Batch, set *limit.Set) {
	next, share := set.Trial()
	if next == nil || l.opts.Trial == nil {
		return
	}
	for i := range b.Requests {
		if limit.InTrial(b.Requests[i].Tenant, share) {
			l.opts.Trial(set, &b.Requests[i])
		}
	}
}

// observeUnlisted reports tenants that the limits do not list.
func (l *Limiter) observeUnlisted(b *Batch, set *limit.Set) {
	if l.opts.Unlisted == nil {
		return
	}
	for i := range b.Requests {
		if r := &b.Requests[i]; r.Inline == nil && !set.Lists(r.Tenant) {
			l.opts.Unlisted(r.Tenant)
		}
	}
}
