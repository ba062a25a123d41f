package limit

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// Loosened describes for people which limits admit more after a change of a set: limits
// that are removed, not enforced any more, fail open now, or have a higher rate or
// capacity. It also lists limits that may admit more, since they apply to other requests,
// or allow some. It compares the given tenants, all plans and the shared limits.
func Loosened(before, after *Set, tenants []string) (lines []string) {
	lines = loosenedOf("", before.defaultPlan.shared(), after.defaultPlan.shared())
	switch was, is := before.defaultPlan, after.defaultPlan; {
	case was.plan != "" && is.plan == "":
		lines = append(lines, fmt.Sprintf("default_plan %s -> none: a tenant that is not listed has only the shared limits", was.plan))
	case was.plan != is.plan:
		lines = append(lines, loosenedOf(fmt.Sprintf("default_plan %s -> %s: ", was.plan, is.plan), was.ownLimits(), is.ownLimits())...)
	}
	for _, plan := range slices.Sorted(maps.Keys(before.byPlan)) {
		if r, ok := after.byPlan[plan]; ok {
			lines = append(lines, loosenedOf("plan "+plan+": ", before.byPlan[plan].ownLimits(), r.ownLimits())...)
		}
	}
	for _, tenant := range tenants {
		was, is := before.rules(tenant), after.rules(tenant)
		if was.plan == is.plan {
			lines = append(lines, loosenedOf("tenant "+tenant+": ", was.overridden(is), is.ownLimits())...)
			continue
		}
		plan := is.plan
		if plan == "" {
			plan = "none"
		}
		lines = append(lines, loosenedOf(fmt.Sprintf("tenant %s, plan %s -> %s: ", tenant, was.plan, plan), was.ownLimits(), is.ownLimits())...)
	}
	return lines
}

// overridden returns the limits of a tenant that it overrides in r or in other; the
// limits of its plan are compared with the plan.
func (r *ruleset) overridden(other *ruleset) []*Limit {
	overrides := func(r *ruleset, id string) bool {
		return slices.ContainsFunc(r.limits(), func(l *Limit) bool { return l.ID == id && l.layer == layerOverride })
	}
	return slices.DeleteFunc(r.ownLimits(), func(l *Limit) bool { return !overrides(r, l.ID) && !overrides(other, l.ID) })
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

// loosenedOf compares limits by their ids.
func loosenedOf(what string, before, after []*Limit) (lines []string) {
	for _, was := range before {
		if was.Mode != ModeEnforce || was.Action == ActionAllow && withID(after, was.ID) == nil {
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
		case after[i].OnError == OnErrorOpen && was.OnError != OnErrorOpen:
			lines = append(lines, fmt.Sprintf("%s%s on_error %s -> %s", what, was.ID, was.OnError, after[i].OnError))
		case !alike(was, after[i]):
			lines = append(lines, fmt.Sprintf("%s%s may: it is of other requests or buckets", what, was.ID))
		}
	}
	for _, is := range after {
		if is.Action == ActionAllow && !slices.ContainsFunc(before, func(l *Limit) bool { return l.ID == is.ID }) {
			lines = append(lines, fmt.Sprintf("%s%s allows requests", what, is.ID))
		}
	}
	return lines
}

// alike reports whether two limits count the same requests in the same buckets.
func alike(a, b *Limit) bool {
	return a.byTenant == b.byTenant && a.Group == b.Group && a.Action == b.Action && a.Missing == b.Missing && a.FixedCost == b.FixedCost &&
		a.MaxCost == b.MaxCost && a.Store == b.Store && reflect.DeepEqual(a.by, b.by) && reflect.DeepEqual(a.when, b.when) && slices.Equal(a.Replaces, b.Replaces)
}

// admitsMore reports whether a has a higher rate or capacity than b.
func admitsMore(a, b *bucket.Params) bool {
	rate := func(p, over *bucket.Params) *big.Int {
		return new(big.Int).Mul(big.NewInt(p.Count), big.NewInt(over.Period))
	}
	return a.Capacity > b.Capacity || rate(a, b).Cmp(rate(b, a)) > 0
}
