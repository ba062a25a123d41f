package limit

import (
	"fmt"
	"math"
)

// TotalRate is what is known of how many units a second limits admit of all tenants together.
type TotalRate struct {
	// Units are units a second for all proxies together, rounded up; 0 where no limit bounds
	// what one tenant gets.
	Units int64
	// Why is where they come from, as a clause for people.
	Why string
}

// TotalRate returns the rate that a bound on all tenants together should not be below. That
// is the rate of the smallest limit that counts everybody in one bucket. Without one it is the
// sum of what the limits of the listed tenants admit, to which those that are not listed add
// without end. Where some listed tenant has no limit that holds all its requests, or none is
// listed, it is the largest rate that a plan gives one tenant.
func (s *Set) TotalRate() TotalRate {
	if rate, id := s.defaultPlan.bound(false); id != "" {
		return TotalRate{roundUp(rate), fmt.Sprintf("%s counts all tenants in one bucket", id)}
	}
	largest, plan := 0.0, ""
	for name, r := range s.byPlan {
		if rate, id := r.bound(true); id != "" && (rate > largest || rate == largest && name < plan) {
			largest, plan = rate, name
		}
	}
	sum, held := 0.0, s.Tenants() > 0
	for _, r := range s.tenants.all() {
		rate, id := r.bound(true)
		sum, held = sum+rate, held && id != ""
	}
	switch unlisted, id := s.defaultPlan.bound(true); {
	case held:
		why := fmt.Sprintf("the limits of the tenants that are listed, %d, admit as much; any others come on top", s.Tenants())
		return TotalRate{roundUp(max(sum, unlisted)), why}
	case plan != "" && id != "":
		return TotalRate{roundUp(largest), fmt.Sprintf("plan %s gives one tenant as much, and how many tenants there are is not known", plan)}
	case plan != "":
		return TotalRate{roundUp(largest), fmt.Sprintf("plan %s gives one tenant as much, and some tenants have no limit that holds all their requests", plan)}
	default:
		return TotalRate{Why: "no limit holds all requests of a tenant"}
	}
}

// bound returns the smallest rate at which a group of the ruleset admits units, however they
// are asked for, and the id of a limit in it, "" where there is no such group: of the limits
// that count a tenant as a whole, or of those that count all tenants as one.
func (r *ruleset) bound(byTenant bool) (smallest float64, id string) {
	replaced := r.replaced()
	for _, g := range r.groups {
		rate, ok := g.rate(byTenant, replaced)
		if ok && (id == "" || rate < smallest) {
			smallest, id = rate, g.candidates[len(g.candidates)-1].ID
		}
	}
	return smallest, id
}

// replaced returns the ids of limits that do not apply where another one does.
func (r *ruleset) replaced() map[string]bool {
	ids := map[string]bool{}
	for _, g := range r.groups {
		for _, l := range g.candidates {
			for _, id := range l.Replaces {
				ids[id] = true
			}
		}
	}
	return ids
}

// rate returns what the limits of a group admit, units a second, if each request meets one of
// them and none of them has buckets whose number is not known.
func (g *group) rate(byTenant bool, replaced map[string]bool) (sum float64, ok bool) {
	if g.slots {
		return 0, false
	}
	all := false
	for _, l := range g.candidates {
		switch {
		case l.Mode != ModeEnforce:
			continue
		case l.Action == ActionAllow || l.byTenant != byTenant || len(l.by) > 0 || l.FixedCost > 0 || replaced[l.ID]:
			return 0, false
		case l.Action == ActionLimit:
			sum += float64(l.Params.Count) / float64(l.Params.Period) * 1e6
		}
		all = all || len(l.when) == 0
	}
	return sum, all && sum > 0
}

// roundUp returns the next whole number, but for what adding up has made inexact.
func roundUp(rate float64) int64 { return int64(math.Ceil(rate - 1e-6)) }
