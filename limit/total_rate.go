package limit

import (
	"fmt"
	"math"
	"slices"
)

// TotalRate is the rate, in units a second, that limits admit of all tenants together.
type TotalRate struct {
	// Units is the units a second for all proxies together, rounded up; 0 if no limit
	// bounds the rate of one tenant.
	Units int64
	// Rounded reports that the rate is below Units.
	Rounded bool
	// OneTenant reports that Units are those of one tenant, as how many there are is not known.
	OneTenant bool
	// Why is what that number is enough for, as a clause for people that follows "what"; without a
	// number it is the reason why there is none.
	Why string
}

// TotalRate returns a lower bound for a bound on the rate of all tenants together. It is
// the rate of the smallest limit that counts all tenants in one bucket. Without such a
// limit it is the sum of the rates of the listed tenants; tenants that are not listed add
// to it without bound. If some listed tenant has no limit on all its requests, or no
// tenant is listed, it is the largest rate that a plan gives one tenant. Requests that a limit
// allows at every level are left out, since the backstop does not count them either.
func (s *Set) TotalRate() TotalRate {
	unbound := func(r *ruleset) bool { return r.bound(false).id == "" } // a plan may allow what all tenants share
	if all := s.defaultPlan.bound(false); all.id != "" && !slices.ContainsFunc(s.rulesets(), unbound) {
		return totalRate(all.rate, false, fmt.Sprintf("limit %s admits of all tenants, which it counts in one bucket", all.id))
	}
	var largest groupRate
	plan := ""
	for name, r := range s.byPlan {
		of := r.bound(true)
		if of.id != "" && (of.rate > largest.rate || of.rate == largest.rate && name < plan) {
			largest, plan = of, name
		}
	}
	sum, held := groupRate{}, s.Tenants() > 0
	for _, r := range s.tenants.all() {
		of := r.bound(true)
		sum.rate, sum.replaced, held = sum.rate+of.rate, sum.replaced || of.replaced, held && of.id != ""
	}
	var why string
	switch unlisted := s.defaultPlan.bound(true); {
	case held:
		largest = sum
		largest.rate = max(sum.rate, unlisted.rate)
		why = fmt.Sprintf("the limits of the listed tenants (%d) admit together, and other tenants come on top", s.Tenants())
	case plan != "" && unlisted.id != "":
		why = fmt.Sprintf("plan %s admits of one tenant", plan)
	case plan != "":
		why = fmt.Sprintf("plan %s admits of one tenant, and some tenants have no limit that holds all their requests", plan)
	default:
		return TotalRate{Why: s.whyNoRate()}
	}
	if largest.replaced {
		why += "; limits that replace one of these come on top"
	}
	return totalRate(largest.rate, !held, why)
}

// whyNoRate returns the reason why no plan bounds the rate of a tenant.
func (s *Set) whyNoRate() string {
	const why = "no enforced limit bounds all that a tenant takes in a second, such as one by: [tenant] without conditions that no other lifts"
	for _, name := range keys(s.byPlan) {
		for _, g := range s.byPlan[name].groups {
			if l, by := g.inPlace(); l != nil {
				return why + "; " + Quote(l.ID) + " of plan " + name + " does not, as " + Quote(by.ID) + " takes its place for some requests"
			}
		}
	}
	for _, l := range s.Limits {
		if l.countsAll() && (l.isQuota() || l.FixedCost > 0) {
			return why + "; " + Quote(l.ID) + " does not, as it is a quota of a day or more or has a cost of its own"
		}
	}
	return why
}

// countsAll reports whether a limit counts all requests of a tenant in one bucket.
func (l *Limit) countsAll() bool {
	return l.EnforcedAlways() && l.byTenant && len(l.by)+len(l.when) == 0
}

// inPlace returns a limit of a group that would bound the rate of a tenant, and the one of the group that takes its place and bounds no
// rate; nil if there is none.
func (g *group) inPlace() (l, by *Limit) {
	bounds := func(l *Limit) bool {
		return l.Action != ActionAllow && !l.isQuota() && l.byTenant && len(l.by) == 0 && l.FixedCost == 0
	}
	i := slices.IndexFunc(g.candidates, func(l *Limit) bool { return l.countsAll() && l.Action == ActionLimit && bounds(l) })
	j := slices.IndexFunc(g.candidates, func(l *Limit) bool { return l.EnforcedAlways() && !bounds(l) })
	if i < 0 || j < 0 || g.slots {
		return nil, nil
	}
	return g.candidates[i], g.candidates[j]
}

// groupRate is the rate at which a group admits units, for any mix of requests.
type groupRate struct {
	rate     float64 // in units a second
	id       string  // of a limit in the group; "" if there is none
	replaced bool    // a limit of another group replaces one of it for some requests, which come on top
}

// bound returns the smallest rate of a group of the ruleset. It considers the limits that count a tenant as a whole, or
// those that count all tenants as one, but not quotas of a day or more: their rate is far below what they admit in a moment.
func (r *ruleset) bound(byTenant bool) (smallest groupRate) {
	replaced := r.replaced()
	for _, g := range r.groups {
		of := g.bound(byTenant, replaced)
		if of.id != "" && (smallest.id == "" || of.rate < smallest.rate) {
			smallest = of
		}
	}
	return smallest
}

// quotaPeriod is the period from which on a limit is a quota: a day, which a calendar may shorten by an hour.
const quotaPeriod = 23 * 3600e6

// isQuota reports whether the period of a limit, as it is written, is that of a quota, or the time in which its bucket
// fills: 1000/d has the rate of 1/86s.
func (l *Limit) isQuota() bool {
	return l.Action == ActionLimit && (l.Rate.Period >= quotaPeriod || l.Params.FullTime() >= quotaPeriod)
}

// replaced returns the ids of limits that do not apply where one of another group does. In one group a request counts for
// one limit in any case.
func (r *ruleset) replaced() map[string]bool {
	ids := map[string]bool{}
	for _, g := range r.groups {
		for _, l := range g.candidates {
			for _, id := range l.Replaces {
				if l.EnforcedAlways() && !slices.ContainsFunc(g.candidates, func(o *Limit) bool { return o.ID == id }) {
					ids[id] = true
				}
			}
		}
	}
	return ids
}

// bound returns the sum of the rates of a group's limits, if one of them applies to each request and none of them has an
// unknown number of buckets.
func (g *group) bound(byTenant bool, replaced map[string]bool) (sum groupRate) {
	if g.slots {
		return groupRate{}
	}
	all := false
	for _, l := range g.candidates {
		switch {
		case !l.EnforcedAlways():
			continue
		case l.Action == ActionAllow || l.isQuota() || l.byTenant != byTenant || len(l.by) > 0 || l.FixedCost > 0 || !byTenant && replaced[l.ID]:
			return groupRate{}
		case l.Action == ActionLimit:
			sum.rate += float64(l.Params.Count) / float64(l.Params.Period) * 1e6
		}
		sum.replaced = sum.replaced || replaced[l.ID]
		all = all || len(l.when) == 0
	}
	if !all || sum.rate == 0 {
		return groupRate{}
	}
	sum.id = g.candidates[len(g.candidates)-1].ID
	return sum
}

// totalRate returns a rate in whole units, rounded up, with a tolerance for rounding errors of a sum.
func totalRate(rate float64, oneTenant bool, why string) TotalRate {
	const tolerance = 1e-6
	units := math.Ceil(rate - tolerance)
	return TotalRate{Units: int64(units), Rounded: units-rate > tolerance, OneTenant: oneTenant, Why: why}
}
