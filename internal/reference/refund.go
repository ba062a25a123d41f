package reference

import "slices"

// Refund returns a cost to the tenant's own buckets from which a check of the same
// request would take it. It returns 1, or 0 if there is no such bucket.
//
// Not documented: a request that is refused without a bucket gets no refund. The buckets
// of shadows get theirs too.
func (m *Model) Refund(now int64, r Request) int {
	all := m.limits.resolve(r, false)
	if slices.ContainsFunc(all, (*considered).refuses) {
		return unknown
	}
	buckets := slices.DeleteFunc(m.ask(now, r, all), func(a *asked) bool { return !a.ofTenant() })
	for _, a := range buckets {
		if b, ok := a.bucket.(counter); ok {
			b.refund(now, a.units)
		}
	}
	m.keep(r, buckets)
	if len(buckets) == 0 {
		return unknown
	}
	return done
}
