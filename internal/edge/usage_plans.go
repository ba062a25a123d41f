package edge

import (
	"fmt"
	"math"
	"strings"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// Bounds of API Gateway.
const (
	maxUsagePlans = 300           // of an account and region, unless raised
	maxInteger    = math.MaxInt32 // of a burst and a quota
	accountRate   = 10_000        // requests a second of an account and region, unless raised
	accountBurst  = 5_000
	day           = 24 * 3600 * second
)

// usagePlan is a usage plan of API Gateway. A number of 0 is absent.
type usagePlan struct {
	plan   string
	rate   float64 // requests a second
	burst  int64
	quota  int64
	period string // of the quota
}

// planRenderer collects usage plans.
type planRenderer struct {
	template
	set   *limit.Set
	said  map[*limit.Limit]bool
	names map[string]bool // of resources
	plans map[string]usagePlan
}

// usagePlans returns the template of usage plans, one for each plan.
func usagePlans(set *limit.Set) template {
	p := &planRenderer{set: set, said: map[*limit.Limit]bool{}, names: map[string]bool{}, plans: map[string]usagePlan{}}
	p.description = "Usage plans that are never stricter than the plans of Limitgate. " + generated
	p.notes = planNotes
	p.parameters = object{
		{key: "ApiId", value: object{{key: "Type", value: "String"}, {key: "Description", value: "The REST API that the usage plans are for."}}},
		{key: "Stage", value: object{{key: "Type", value: "String"}, {key: "Description", value: "The stage of that API."}}},
	}
	for _, plan := range set.PlanNames() {
		p.add(p.usagePlan(plan, planLimits(set, plan)))
	}
	if n := len(p.resources); n > maxUsagePlans {
		p.warnings = append(p.warnings, Warning{1, fmt.Sprintf("these are %d usage plans: an account has %d in a region, unless AWS raises that", n, maxUsagePlans)})
	}
	if more := len(p.resources) - len(p.outputs); more > 0 {
		p.warnings = append(p.warnings, Warning{1, fmt.Sprintf("%d usage plans have no output: a template has at most %d", more, maxOutputs)})
	}
	p.warnRest()
	return p.template
}

var planNotes = []string{
	"A usage plan limits each API key: give a tenant the key, and its plan the key's usage plan, by an",
	"AWS::ApiGateway::UsagePlanKey of your own. A tenant with several keys has the limits several times.",
	"API Gateway counts requests, not units, by its own best effort, and returns none: units that RL.COMMIT,",
	"RL.CANCEL or RL.REFUND return stay counted. It does so for REST APIs alone. Quotas begin at midnight in",
	"UTC. UpdateUsagePlan is possible once in 20 s, so that a stack with many takes its time.",
}

// usagePlan returns the usage plan for tenants with the limits.
func (p *planRenderer) usagePlan(plan string, limits []*limit.Limit) usagePlan {
	u := usagePlan{plan: plan}
	var throttle *ceiling
	for _, c := range tenantCeilings(limits) {
		if period, requests := quotaOf(c); period != "" {
			p.setQuota(&u, c, period, requests)
			continue
		}
		if throttle == nil || c.last.Rate.Period < throttle.last.Rate.Period {
			throttle = &c
		}
	}
	if throttle != nil {
		p.setThrottle(&u, *throttle)
	}
	return u
}

// setThrottle sets the bucket of a usage plan. In no time it holds less than the limits.
func (p *planRenderer) setThrottle(u *usagePlan, c ceiling) {
	var rate float64
	var burst int64
	for _, l := range c.sum {
		cost := max(1, l.FixedCost)
		own := float64(l.Undivided.Count) / float64(l.Undivided.Period) * float64(second) / float64(cost)
		// In t, windows of a period p admit less than 2 + t/p times their count, and a log 1 + t/p
		// times. A cost divides what begins and what is added, each of which may have a remainder.
		full := l.Undivided.Capacity + leased(l)
		if a := l.Undivided.Algorithm; a == bucket.AlgorithmFixedWindow || a == bucket.AlgorithmSlidingWindow || a == bucket.AlgorithmCalendarWindow {
			full *= 2
		}
		if l.Store == limit.PlacementAutoLocal {
			own, full = 2*own, 2*full
		}
		rate += own
		burst += ceilDiv(full, cost)
	}
	if burst > maxInteger {
		for _, l := range c.sum {
			p.handle(l, "it is not said: a burst of %d is above API Gateway's maximum of %d", burst, maxInteger)
		}
		return
	}
	u.rate, u.burst = math.Ceil(rate*1000)/1000, burst
	for _, l := range c.sum {
		said := fmt.Sprintf("usage plan %s: %s a second and a burst of %d", u.plan, decimal(u.rate), u.burst)
		parts := append([]string{said}, commonLosses(l)...)
		if l.Undivided.Algorithm != bucket.AlgorithmTokenBucket {
			parts = append(parts, fmt.Sprintf("%s (%s) is a bucket there", l.Describe(), l.Undivided.Algorithm))
		}
		if len(c.sum) > 1 {
			parts = append(parts, fmt.Sprintf("one bucket holds the requests of this and %d more", len(c.sum)-1))
		}
		if u.rate > accountRate || u.burst > accountBurst {
			parts = append(parts, fmt.Sprintf("an account has %d a second and a burst of %d together, unless AWS raises that", accountRate, accountBurst))
		}
		if len(parts) > 1 {
			p.warn(l, "%s", strings.Join(parts, "; "))
		}
		p.said[l] = true
	}
}

// quotaOf returns the period of the quota that a ceiling is, and its requests; "" if it is none.
func quotaOf(c ceiling) (period string, requests int64) {
	if len(c.sum) != 1 {
		return "", 0
	}
	l := c.sum[0]
	var length int64
	switch p := l.Rate.Period; {
	case l.Rate.Calendar == bucket.CalendarDay || p == day:
		period, length = "DAY", day
	case p == 7*day:
		period, length = "WEEK", 7*day
	case l.Rate.Calendar == bucket.CalendarMonth || p >= 28*day && p <= 31*day:
		period, length = "MONTH", 31*day
	default:
		return "", 0
	}
	cost, held := max(1, l.FixedCost), l.Undivided.Capacity+leased(l)
	if l.Store != limit.PlacementShared { // the store's count and the instances' own
		held *= 2
	}
	switch inUTC := l.Rate.Calendar == bucket.NotCalendar || l.Zone.String() == "UTC"; {
	case l.Undivided.Algorithm != bucket.AlgorithmFixedWindow && l.Undivided.Algorithm != bucket.AlgorithmCalendarWindow:
	case inUTC && (l.Rate.Calendar != bucket.NotCalendar || period == "DAY"): // the same windows
		return period, held / cost
	case l.Rate.Calendar != bucket.NotCalendar: // a day or month in UTC meets two of another zone
		return period, 2 * held / cost
	}
	return period, most(l, length)
}

// setQuota sets the quota of a usage plan, unless it has one.
func (p *planRenderer) setQuota(u *usagePlan, c ceiling, period string, requests int64) {
	l := c.sum[0]
	switch {
	case u.quota > 0:
		p.handle(l, "it is not said: usage plan %s has one quota", u.plan)
		return
	case requests > maxInteger:
		p.handle(l, "it is not said: a quota of %d is above API Gateway's maximum of %d", requests, maxInteger)
		return
	}
	u.quota, u.period = requests, period
	parts := append([]string{fmt.Sprintf("usage plan %s: %d requests in a %s", u.plan, requests, strings.ToLower(period))}, commonLosses(l)...)
	if requests != l.Undivided.Capacity/max(1, l.FixedCost) {
		parts = append(parts, fmt.Sprintf("its periods are not those of a quota, which meets several: %s", l.Describe()))
	}
	if len(parts) > 1 {
		p.warn(l, "%s", strings.Join(parts, "; "))
	}
	p.said[l] = true
}

// handle warns of a limit that no usage plan has.
func (p *planRenderer) handle(l *limit.Limit, format string, args ...any) {
	p.said[l] = true
	p.warn(l, format, args...)
}
