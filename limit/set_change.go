package limit

import "slices"

// Change returns a set that differs from s in some tenants: those of part have their
// limits there, and removed ones are not listed any more. Part is compiled from the same
// plans and shared limits, and from the tenants that changed or are Named, so that its
// cost does not depend on the number of tenants. Change returns ok = false if part was
// compiled from other plans or shared limits: then all tenants have to be compiled.
//
// Limits of part stay in memory beside their equals of s; compiling all tenants ends
// that.
func (s *Set) Change(part *Set, removed []string, version string) (changed *Set, ok bool) {
	if !slices.Equal(s.IDs, part.IDs) || !sameKeys(s.byPlan, part.byPlan) {
		return nil, false
	}
	trial, ok := s.trial.change(&part.trial, removed)
	if !ok {
		return nil, false
	}
	changes := map[string]*ruleset{}
	for _, name := range removed {
		changes[name] = nil
	}
	for name, r := range part.tenants.all() {
		changes[name] = r
		if r == part.byPlan[r.plan] { // it overrides nothing
			changes[name] = s.byPlan[r.plan]
		}
	}
	return &Set{
		Version: version, File: s.File, IDs: s.IDs, Limits: s.Limits,
		tenants: s.tenants.with(changes), defaultPlan: s.defaultPlan, byPlan: s.byPlan,
		trial: trial, declared: s.declared, inClear: s.inClear, dims: s.dims,
	}, true
}

// Named returns the tenants in conditions of plans' limits, one entry for each condition:
// the validity of the plan depends on them.
func (s *Set) Named() (tenants []string) {
	for _, l := range s.Limits {
		if l.layer != layerPlan {
			continue
		}
		for i := range l.when {
			if w := &l.when[i]; w.kind == propertyTenant && w.exact {
				tenants = append(tenants, w.prefix)
			}
		}
	}
	if s.trial.set != nil {
		tenants = append(tenants, s.trial.set.Named()...)
	}
	return tenants
}

func sameKeys[V any](a, b map[string]V) bool {
	if len(a) != len(b) {
		return false
	}
	for k := range a {
		if _, ok := b[k]; !ok {
			return false
		}
	}
	return true
}
