package limit

import (
	"fmt"
	"maps"
	"slices"
)

// Loosened describes for people which limits admit more after a change of a set: limits
// that are removed, not enforced any more, fail open now, or have a higher rate or
// capacity, and those whose place another limit takes, which admits more, or of which it counts some requests apart. It also lists
// limits that may admit more, since they apply to other requests, or allow some. It compares the given tenants,
// those with overrides, which have the rest of their plan's limits, all plans and the shared limits.
func Loosened(before, after *Set, tenants []string) []string {
	c := loosened{plans: map[string]bool{}, known: map[[2]*Limit]bool{}}
	c.shared(before.defaultPlan.shared(), after.defaultPlan.shared())
	switch was, is := before.defaultPlan, after.defaultPlan; {
	case was.plan != "" && is.plan == "":
		c.add("default_plan %s -> none: a tenant that is not listed has only the shared limits", was.plan)
	case was.plan != is.plan:
		c.rulesets(fmt.Sprintf("default_plan %s -> %s: ", was.plan, is.plan), was, is)
	}
	for _, plan := range slices.Sorted(maps.Keys(before.byPlan)) {
		if r, ok := after.byPlan[plan]; ok {
			c.plans[plan] = c.rulesets("plan "+plan+": ", before.byPlan[plan], r)
		}
	}
	named := slices.Concat(tenants, new(changes).changedTenants(before, after))
	slices.Sort(named)
	for _, tenant := range slices.Compact(named) {
		c.tenant(tenant, before.rules(tenant), after.rules(tenant))
	}
	if c.cut || c.cutFreed {
		c.add("more limits may take the place of others than are compared")
	}
	return c.lines
}

// loosened collects the lines of Loosened.
type loosened struct {
	lines    []string
	plans    map[string]bool    // whether the limits of a plan, with the shared ones, changed
	known    map[[2]*Limit]bool // whether two limits, which no tenant overrides, are the same
	replaced map[string]bool    // the ids of limits that others replace, of those that are compared
	compared int                // pairs of limits for the place of one
	cut      bool               // there are more than maxPlaces

	comparedFreed int  // limits that are compared by freed
	cutFreed      bool // there are more than maxFreed
}

func (c *loosened) add(format string, args ...any) {
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

// shared compares the shared limits.
func (c *loosened) shared(before, after []*Limit) {
	c.limits("", before, after, after)
	c.places("", before, after, func(_, _, _, _ *Limit) bool { return true })
}

// rulesets compares two rulesets without their shared limits, and reports whether they, with the shared ones, differ.
func (c *loosened) rulesets(what string, was, is *ruleset) (changed bool) {
	c.limits(what, was.ownLimits(), is.ownLimits(), is.sorted())
	return c.places(what, was.sorted(), is.sorted(), func(taker, _, _, _ *Limit) bool { return taker.layer != layerShared })
}

// tenant compares the rulesets of a tenant. Of one plan they are compared as far as the tenant overrides its limits: the rest is compared
// with the plan.
func (c *loosened) tenant(name string, was, is *ruleset) {
	if was.plan != is.plan {
		plan := is.plan
		if plan == "" {
			plan = "none"
		}
		c.rulesets(fmt.Sprintf("tenant %s, plan %s -> %s: ", name, was.plan, plan), was, is)
		return
	}
	before, after := was.overridden(is), is.overridden(was)
	if !c.plans[is.plan] && slices.EqualFunc(before, after, c.same) {
		return
	}
	c.limits("tenant "+name+": ", before, after, is.sorted())
	c.places("tenant "+name+": ", was.sorted(), is.sorted(), func(taker, taking, was, is *Limit) bool {
		return overrides(taker, taking, was, is)
	})
}

// limits compares limits by their ids. All are those that may count a request together after the change.
func (c *loosened) limits(what string, before, after, all []*Limit) {
	was, is, renamed := byID(before), byID(after), renamedLimits(before, after)
	for _, l := range before {
		if renamed[l] != nil && !isTaken(l, renamed[l], was, all) {
			if loosening(l, nil) != "" {
				c.add("%s%s %s", what, l.ID, anew(renamed[l]))
			}
			continue
		}
		if now := is[l.ID]; now != nil && !slices.Equal(l.Replaces, now.Replaces) && onlyCountsBeside(now, l, all) {
			was := *l
			was.Replaces = now.Replaces
			l = &was
		}
		if text := loosening(l, is[l.ID]); text != "" {
			c.add("%s%s %s", what, l.ID, text)
		}
	}
	for _, l := range after {
		if l.Action == ActionAllow && l.Mode == ModeEnforce && was[l.ID] == nil {
			c.add("%s%s allows requests", what, l.ID)
		}
	}
}

// isTaken reports whether another limit may take the place of is, and did not take that of was, which is has from now on by
// another id. Before has the limits before the change by their ids.
func isTaken(was, is *Limit, before map[string]*Limit, all []*Limit) bool {
	takes := func(o, l *Limit) bool { return slices.Contains(o.Replaces, l.ID) || takesPlace(o, l) }
	return slices.ContainsFunc(all, func(o *Limit) bool {
		return o.ID != is.ID && takes(o, is) && (before[o.ID] == nil || !takes(before[o.ID], was))
	})
}

// byID returns the first limit of each id.
func byID(limits []*Limit) map[string]*Limit {
	of := make(map[string]*Limit, len(limits))
	for _, l := range limits {
		if of[l.ID] == nil {
			of[l.ID] = l
		}
	}
	return of
}

// overridden returns the limits of a tenant that it overrides in r, or in other if both are of one
// plan; the limits of its plan are compared with the plan.
func (r *ruleset) overridden(other *ruleset) (own []*Limit) {
	all, ids := r.limits(), map[string]bool{}
	for _, l := range all {
		if l.layer == layerOverride {
			ids[l.ID] = true
		}
	}
	if r.plan == other.plan {
		for _, l := range other.limits() {
			if l.layer == layerOverride {
				ids[l.ID] = true
			}
		}
	}
	for _, l := range all {
		if l.layer != layerShared && ids[l.ID] {
			own = append(own, l)
		}
	}
	sortByOrder(own)
	return own
}

// ownLimits returns the limits of a plan and its overrides, in their order, without the
// shared ones.
func (r *ruleset) ownLimits() []*Limit {
	return slices.DeleteFunc(r.sorted(), func(l *Limit) bool { return l.layer == layerShared })
}

func (r *ruleset) shared() []*Limit {
	return slices.DeleteFunc(r.sorted(), func(l *Limit) bool { return l.layer != layerShared })
}

func (r *ruleset) sorted() []*Limit {
	all := r.limits()
	sortByOrder(all)
	return all
}
