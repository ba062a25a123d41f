package limit

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
)

// Loosened says for people which limits admit more after a change of a set: those that are
// removed, not enforced any more, or have a higher rate or capacity. Of the tenants it looks at
// those that are given, and at all plans and shared limits.
func Loosened(before, after *Set, tenants []string) (lines []string) {
	lines = loosenedOf("", before.defaultPlan.shared(), after.defaultPlan.shared())
	if before.defaultPlan.plan != "" && after.defaultPlan.plan == "" {
		lines = append(lines, fmt.Sprintf("default_plan %s -> none: a tenant that is not listed has only the shared limits", before.defaultPlan.plan))
	}
	for _, plan := range slices.Sorted(maps.Keys(before.byPlan)) {
		if r, ok := after.byPlan[plan]; ok {
			lines = append(lines, loosenedOf("plan "+plan+": ", before.byPlan[plan].own(), r.own())...)
		}
	}
	for _, tenant := range tenants {
		was, is := before.rules(tenant), after.rules(tenant)
		what := "tenant " + tenant + ": "
		if was.plan != is.plan {
			plan := is.plan
			if plan == "" {
				plan = "none"
			}
			what = fmt.Sprintf("tenant %s, plan %s -> %s: ", tenant, was.plan, plan)
		}
		lines = append(lines, loosenedOf(what, was.own(), is.own())...)
	}
	return lines
}

// own returns the limits of a plan and its overrides, in their order, and shared the others.
func (r *ruleset) own() []*Limit {
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

// loosenedOf compares limits by their ids.
func loosenedOf(what string, before, after []*Limit) (lines []string) {
	for _, was := range before {
		if was.Mode != ModeEnforce {
			continue
		}
		i := slices.IndexFunc(after, func(l *Limit) bool { return l.ID == was.ID })
		switch {
		case i < 0:
			lines = append(lines, fmt.Sprintf("%s%s %s -> none", what, was.ID, was.Describe()))
		case after[i].Mode != ModeEnforce:
			lines = append(lines, fmt.Sprintf("%s%s enforce -> %s", what, was.ID, after[i].Mode))
		case admitsMore(&after[i].Params, &was.Params):
			lines = append(lines, fmt.Sprintf("%s%s %s -> %s", what, was.ID, was.Describe(), after[i].Describe()))
		}
	}
	return lines
}

// admitsMore reports whether a has a higher rate or capacity than b.
func admitsMore(a, b *Params) bool {
	rate := func(p, over *Params) *big.Int { return new(big.Int).Mul(big.NewInt(p.Count), big.NewInt(over.Period)) }
	return a.Capacity > b.Capacity || rate(a, b).Cmp(rate(b, a)) > 0
}
