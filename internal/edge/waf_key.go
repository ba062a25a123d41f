package edge

import (
	"fmt"

	"github.com/limitgate/limitgate/limit"
)

// addKeyRule adds the rule for the requests with one API key, which are those of one tenant. No tenant's
// limits are stricter than the rule.
func (w *waf) addKeyRule() {
	var bounds [][]ceiling // of each plan, and of each tenant with overrides
	for _, plan := range append(w.set.PlanNames(), "") {
		if plan == "" && w.set.DefaultPlan() != "" {
			continue // without a default plan, tenants that are not listed have no plan
		}
		found := tenantCeilings(planLimits(w.set, plan))
		if len(found) == 0 {
			w.noKeyRule(plan)
			return
		}
		bounds = append(bounds, found)
	}
	for _, tenant := range overridden(w.all) {
		found := tenantCeilings(w.set.TenantLimits(tenant))
		if len(found) == 0 {
			w.noKeyRule(w.set.Plan(tenant))
			return
		}
		bounds = append(bounds, found)
	}
	r := rule{name: "api-key", header: w.opts.APIKeyHeader}
	var widest int64
	for _, ceilings := range bounds {
		if c, n := tightest(ceilings, windows[0]*second); n > widest {
			r.of, widest = c, n
		}
	}
	most := func(t int64) (requests int64) {
		for _, ceilings := range bounds {
			_, n := tightest(ceilings, t)
			requests = max(requests, n)
		}
		return requests
	}
	if w.size(&r, r.of.last.Rate.Period, most) {
		w.add(r)
	}
}

func (w *waf) noKeyRule(plan string) {
	who := "tenants of plan " + plan
	if plan == "" {
		who = "tenants that are not listed"
	}
	w.warnings = append(w.warnings, Warning{1, fmt.Sprintf("there is no rule for API keys: no limit by tenant alone holds all requests of %s", who)})
}

// tightest returns the ceiling that admits least in t microseconds.
func tightest(ceilings []ceiling, t int64) (c ceiling, requests int64) {
	for i, other := range ceilings {
		if n := total(other.sum, t); i == 0 || n < requests {
			c, requests = other, n
		}
	}
	return c, requests
}

// planLimits returns the limits of the tenants of a plan that have no overrides; "" is no plan.
func planLimits(set *limit.Set, plan string) (out []*limit.Limit) {
	for _, l := range set.Limits {
		if l.Plan == plan || l.Plan == "" {
			out = append(out, l)
		}
	}
	return out
}

// overridden returns the tenants that have limits of their own, each once, by the order of these.
func overridden(all []*limit.Limit) (tenants []string) {
	seen := map[string]bool{}
	for _, l := range all {
		if l.Tenant != "" && !seen[l.Tenant] {
			seen[l.Tenant] = true
			tenants = append(tenants, l.Tenant)
		}
	}
	return tenants
}
