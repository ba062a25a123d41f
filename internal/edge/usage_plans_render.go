package edge

import (
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// add adds the resource of a usage plan.
func (p *planRenderer) add(u usagePlan) {
	if u.rate == 0 && u.quota == 0 {
		p.warnings = append(p.warnings, Warning{1, fmt.Sprintf("plan %s has no usage plan: no limit by tenant alone holds all requests of its tenants", u.plan)})
		return
	}
	if len(p.resources) == maxResources {
		p.warnings = append(p.warnings, Warning{1, fmt.Sprintf("plan %s has no usage plan: a template has at most %d resources", u.plan, maxResources)})
		return
	}
	p.plans[u.plan] = u
	properties := object{
		{key: "UsagePlanName", value: "limitgate-" + literal.Replace(printable(u.plan))},
		{key: "Description", value: generated},
		{key: "ApiStages", value: list{object{
			{key: "ApiId", value: object{{key: "Ref", value: "ApiId"}}},
			{key: "Stage", value: object{{key: "Ref", value: "Stage"}}},
		}}},
	}
	if u.rate > 0 {
		properties = append(properties, field{key: "Throttle", value: object{{key: "RateLimit", value: u.rate}, {key: "BurstLimit", value: u.burst}}})
	}
	if u.quota > 0 {
		properties = append(properties, field{key: "Quota", value: object{{key: "Limit", value: u.quota}, {key: "Period", value: u.period}}})
	}
	id := p.resourceName(u.plan)
	p.resources = append(p.resources, field{key: id, value: object{{key: "Type", value: "AWS::ApiGateway::UsagePlan"}, {key: "Properties", value: properties}}})
	if len(p.outputs) == maxOutputs {
		return
	}
	p.outputs = append(p.outputs, field{key: id, value: object{{key: "Value", value: object{{key: "Ref", value: id}}}}})
}

// literal replaces characters of references, which CloudFormation resolves in any text: ${NAME} and
// {{resolve:SERVICE:NAME}}.
var literal = strings.NewReplacer("${", "--", "{{", "--")

// stricter reports whether a usage plan may deny what another one admits.
func (u usagePlan) stricter(other usagePlan) bool {
	throttles := u.rate > 0 && (other.rate == 0 || other.rate > u.rate || other.burst > u.burst)
	ends := u.quota > 0 && (other.quota == 0 || other.quota > u.quota || other.period != u.period)
	return throttles || ends
}

// resourceName returns a logical name that no other plan has: letters and digits.
func (p *planRenderer) resourceName(plan string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(plan, func(r rune) bool { return !isAlphanumeric(r) }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	id := b.String() + "UsagePlan"
	for n := 2; p.names[id]; n++ {
		id = fmt.Sprintf("%sUsagePlan%d", b.String(), n)
	}
	p.names[id] = true
	return id
}

func isAlphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// warnRest warns of the limits that no usage plan has, and of tenants that their usage plan would
// hold below their limits.
func (p *planRenderer) warnRest() {
	for _, l := range p.set.Limits {
		why := notRendered(l)
		switch {
		case p.said[l]:
			continue
		case why != "":
		case l.Plan == "":
			why = "it spans tenants, and a usage plan is for each key: it is not rendered"
		case l.Action == limit.ActionAllow:
			why = "it lets requests pass, and a usage plan holds all requests: it is not rendered"
		case !slices.Equal(l.Level(), []string{"tenant"}):
			why = "it counts by " + strings.Join(l.Level(), ", ") + ", and a usage plan by key alone: it is not rendered"
		case len(l.Clauses()) > 0:
			why = "it has conditions, and a usage plan holds all requests: it is not rendered"
		default:
			why = "it is not rendered: a usage plan has one rate and one quota, and other limits of the plan have these or let requests pass"
		}
		p.warn(l, "%s", why)
	}
	p.warnTenants()
}

// warnTenants warns of tenants whose overrides admit more than the usage plan of their plan.
func (p *planRenderer) warnTenants() {
	all := p.set.All()
	warnOverrides(&p.template, all, "a usage plan is for all tenants of a plan")
	var held []string
	line := 0
	for _, tenant := range overridden(all) {
		u, ok := p.plans[p.set.Plan(tenant)]
		own := (&planRenderer{said: map[*limit.Limit]bool{}}).usagePlan(tenant, p.set.TenantLimits(tenant))
		if !ok || !u.stricter(own) {
			continue
		}
		if len(held) == 0 {
			line = all[slices.IndexFunc(all, func(l *limit.Limit) bool { return l.Tenant == tenant })].Line
		}
		held = append(held, tenant)
	}
	if len(held) > 0 {
		text := "do not give the usage plan of their plan to the keys of tenants whose overrides admit more than it: " + strings.Join(held[:min(maxNamed, len(held))], ", ")
		if more := len(held) - maxNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		p.warnings = append(p.warnings, Warning{line, text})
	}
}

func decimal(x float64) string { return fmt.Sprintf("%.10g", x) }
