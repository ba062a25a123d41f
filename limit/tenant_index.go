package limit

import (
	"iter"
	"maps"
)

// tenantIndex has the rules of each tenant that is listed.
type tenantIndex struct {
	base    map[string]*ruleset
	changed map[string]*ruleset // since base was made, nil for who is not listed any more
	len     int                 // tenants that are listed
}

// maxChanged is how many tenants may be changed beside a base of so many: each change
// copies those, and so many changes copy the base.
func maxChanged(base int) int { return max(64, base/32) }

// get returns the rules of a tenant, nil when it is not listed.
func (r *tenantIndex) get(tenant string) *ruleset {
	if len(r.changed) > 0 {
		if rules, ok := r.changed[tenant]; ok {
			return rules
		}
	}
	return r.base[tenant]
}

// with returns a roster that differs from r in some tenants; nil is for who is not listed
// any more.
func (r *tenantIndex) with(tenants map[string]*ruleset) *tenantIndex {
	next := &tenantIndex{base: r.base, changed: make(map[string]*ruleset, len(r.changed)+len(tenants)), len: r.len}
	maps.Copy(next.changed, r.changed)
	for tenant, rules := range tenants {
		if was := r.get(tenant); was == nil && rules != nil {
			next.len++
		} else if was != nil && rules == nil {
			next.len--
		}
		next.changed[tenant] = rules
	}
	if len(next.changed) > maxChanged(len(next.base)) {
		next.base, next.changed = maps.Collect(next.all()), nil
	}
	return next
}

// all goes through the tenants that are listed, in no order.
func (r *tenantIndex) all() iter.Seq2[string, *ruleset] {
	return func(yield func(string, *ruleset) bool) {
		for tenant, rules := range r.base {
			if _, changed := r.changed[tenant]; !changed && !yield(tenant, rules) {
				return
			}
		}
		for tenant, rules := range r.changed {
			if rules != nil && !yield(tenant, rules) {
				return
			}
		}
	}
}
