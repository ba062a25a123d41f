package limit

import (
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit/bucket"
)

// Loosened describes for people which limits admit more after a change of a set: limits
// that are removed, not enforced any more, fail open now, or have a higher rate or
// capacity. It also lists limits that may admit more, since they apply to other requests,
// or allow some. It compares the given tenants, those with overrides, which have the rest of
// their plan's limits, all plans and the shared limits.
func Loosened(before, after *Set, tenants []string) (lines []string) {
	lines = loosenedOf("", before.defaultPlan.shared(), after.defaultPlan.shared())
	lines = append(lines, loosenedPlaces("", before.defaultPlan.shared(), after.defaultPlan.shared(), after.defaultPlan.shared(), false)...)
	switch was, is := before.defaultPlan, after.defaultPlan; {
	case was.plan != "" && is.plan == "":
		lines = append(lines, fmt.Sprintf("default_plan %s -> none: a tenant that is not listed has only the shared limits", was.plan))
	case was.plan != is.plan:
		lines = append(lines, loosenedRulesets(fmt.Sprintf("default_plan %s -> %s: ", was.plan, is.plan), was, is)...)
	}
	for _, plan := range slices.Sorted(maps.Keys(before.byPlan)) {
		if r, ok := after.byPlan[plan]; ok {
			lines = append(lines, loosenedRulesets("plan "+plan+": ", before.byPlan[plan], r)...)
		}
	}
	named := slices.Concat(tenants, new(changes).changedTenants(before, after))
	slices.Sort(named)
	for _, tenant := range slices.Compact(named) {
		was, is := before.rules(tenant), after.rules(tenant)
		if was.plan == is.plan {
			what := "tenant " + tenant + ": "
			lines = append(lines, loosenedOf(what, was.overridden(is), is.overridden(was))...)
			lines = append(lines, loosenedPlaces(what, was.sorted(), is.sorted(), is.sorted(), true)...)
			continue
		}
		plan := is.plan
		if plan == "" {
			plan = "none"
		}
		lines = append(lines, loosenedRulesets(fmt.Sprintf("tenant %s, plan %s -> %s: ", tenant, was.plan, plan), was, is)...)
	}
	return lines
}

// loosenedRulesets compares two rulesets without their shared limits.
func loosenedRulesets(what string, was, is *ruleset) []string {
	return append(loosenedOf(what, was.ownLimits(), is.ownLimits()), loosenedPlaces(what, was.sorted(), is.sorted(), is.ownLimits(), false)...)
}

// overridden returns the limits of a tenant that it overrides in r, or in other if both are of one
// plan; the limits of its plan are compared with the plan.
func (r *ruleset) overridden(other *ruleset) []*Limit {
	own, ids := r.ownLimits(), map[string]bool{}
	for _, l := range own {
		ids[l.ID] = l.layer == layerOverride
	}
	if r.plan == other.plan {
		for _, l := range other.limits() {
			ids[l.ID] = ids[l.ID] || l.layer == layerOverride
		}
	}
	return slices.DeleteFunc(own, func(l *Limit) bool { return !ids[l.ID] })
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
		if text := loosening(was, withID(after, was.ID)); text != "" {
			lines = append(lines, what+was.ID+" "+text)
		}
	}
	for _, is := range after {
		if is.Action == ActionAllow && is.Mode == ModeEnforce && withID(before, is.ID) == nil {
			lines = append(lines, fmt.Sprintf("%s%s allows requests", what, is.ID))
		}
	}
	return lines
}

// loosening describes how a limit admits more, or may, than the one that it was; "" if it does not. Is is nil for a limit that is removed.
func loosening(was, is *Limit) string {
	switch {
	case is == nil && (was.Action == ActionAllow || was.Mode != ModeEnforce):
		return ""
	case is == nil:
		return was.Describe() + " -> none"
	case is.Action == ActionAllow:
		return loosenedAllow(was, is)
	case was.Action == ActionAllow || was.Mode != ModeEnforce:
		return ""
	case is.enforcedIn() < was.enforcedIn():
		return was.DescribeMode() + " -> " + is.DescribeMode()
	case admitsMore(is, was):
		return was.Describe() + " -> " + is.Describe()
	case is.OnError == OnErrorOpen && was.OnError != OnErrorOpen:
		return fmt.Sprintf("on_error %s -> %s", was.OnError, is.OnError)
	case !alike(was, is) && !onlyDeniesMissing(is, was):
		return "may admit more: " + strings.Join(differences(was, is), ", ")
	}
	return ""
}

// loosenedAllow is loosening for a limit that allows now.
func loosenedAllow(was, is *Limit) string {
	narrower := *is
	narrower.when = was.when
	switch {
	case is.Mode != ModeEnforce && (was.Action == ActionAllow || was.Mode != ModeEnforce):
		return ""
	case is.Mode != ModeEnforce: // it neither counts nor allows
		return was.DescribeMode() + " -> " + is.DescribeMode()
	case was.Action != ActionAllow:
		return was.Describe() + " -> allow"
	case is.enforcedIn() > was.enforcedIn():
		return was.DescribeMode() + " -> " + is.DescribeMode()
	case !alike(was, is) && !(alike(was, &narrower) && is.within(was)):
		return "may admit more: " + strings.Join(differences(was, is), ", ")
	}
	return ""
}

// alike reports whether two limits count the same requests in the same buckets.
func alike(a, b *Limit) bool {
	return a.byTenant == b.byTenant && a.Group == b.Group && a.Action == b.Action && a.Missing == b.Missing && a.Store == b.Store &&
		a.Params.Algorithm == b.Params.Algorithm && reflect.DeepEqual(a.by, b.by) && reflect.DeepEqual(a.when, b.when) && slices.Equal(a.Replaces, b.Replaces)
}

// onlyDeniesMissing reports whether a limit differs in the requests that it counts from what it was by denying those without its dimensions.
func onlyDeniesMissing(is, was *Limit) bool {
	before := *was
	before.Missing = is.Missing
	return is.Missing == MissingDeny && alike(&before, is)
}

// admitsMore reports whether a limit has a higher rate or capacity than it had, or may have, for the cost of a request.
func admitsMore(is, was *Limit) bool {
	cost, before := is.FixedCost, was.FixedCost
	switch {
	case (cost == 0) != (before == 0):
		return true // by the cost of the request
	case cost == 0 && was.MaxCost > 0 && (is.MaxCost == 0 || is.MaxCost > was.MaxCost):
		return true
	}
	cost, before = max(cost, 1), max(before, 1)
	rate := func(p, over *bucket.Params, cost int64) *big.Int {
		return new(big.Int).Mul(new(big.Int).Mul(big.NewInt(p.Count), big.NewInt(over.Period)), big.NewInt(cost))
	}
	return is.Params.Capacity/cost > was.Params.Capacity/before ||
		rate(&is.Params, &was.Params, before).Cmp(rate(&was.Params, &is.Params, cost)) > 0
}
