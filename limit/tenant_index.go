package limit

import (
	"iter"
	"maps"
	"reflect"
)

// tenantIndex has the rules of each listed tenant.
type tenantIndex struct {
	base    map[string]*ruleset
	changed map[string]*ruleset // since base was made; nil for a tenant that is not listed any more
	len     int                 // listed tenants
}

// maxChanged is how many tenants may be changed beside a base of that size: each change
// copies the changed tenants, and after that many changes the base is copied.
func maxChanged(base int) int { return max(64, base/32) }

// get returns the rules of a tenant, or nil if it is not listed.
func (r *tenantIndex) get(tenant string) *ruleset {
	if len(r.changed) > 0 {
		if rules, ok := r.changed[tenant]; ok {
			return rules
		}
	}
	return r.base[tenant]
}

// with returns a tenantIndex that differs from r in some tenants; nil rules remove a
// tenant.
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

// all iterates over the listed tenants, in no order.
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

// differing iterates over the tenants of which r and an earlier index have not the same object as
// their rules, in no order and some of them twice. Where r was made of that index by a few changes,
// it looks at no other tenants.
func (r *tenantIndex) differing(before *tenantIndex) iter.Seq[string] {
	is, was := r.all(), before.all()
	if reflect.ValueOf(r.base).UnsafePointer() == reflect.ValueOf(before.base).UnsafePointer() {
		is, was = maps.All(r.changed), maps.All(before.changed)
	}
	return func(yield func(string) bool) {
		for _, tenants := range []iter.Seq2[string, *ruleset]{is, was} {
			for tenant := range tenants {
				if r.get(tenant) != before.get(tenant) && !yield(tenant) {
					return
				}
			}
		}
	}
}
