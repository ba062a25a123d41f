package limit

import "slices"

// Change returns a set that differs from s in some tenants: those that part has are as
// they are there, and removed ones are not listed any more. Part is compiled from the
// same plans and shared limits, and the tenants that changed or are Named: what that costs
// does not depend on how many there are. It reports ok = false when part was compiled from
// other ones: then all has to be compiled anew.
//
// Limits of part live on beside their equals of s; compiling all anew ends that.
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
		trial: trial,
	}, true
}

// Named returns the tenants that a plan's limits have conditions on, as often as they do:
// whether the plan can be compiled depends on them.
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
