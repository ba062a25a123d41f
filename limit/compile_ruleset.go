package limit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// pauseEvery is the number of tenants between two pauses: a tenth of a millisecond or
// two.
const pauseEvery = 64

// compileRulesets makes the rulesets of the plans and of the listed tenants.
func (c *compiler) compileRulesets() {
	for _, spec := range c.doc.Plans {
		p := c.plans[spec.Name.Value]
		c.set.byPlan[spec.Name.Value] = c.ruleset(spec.Name.Value, p.limits, layerShared, spec.Name.Line)
	}
	c.set.defaultPlan = c.ruleset("", nil, layerShared, 1)
	if d := c.doc.DefaultPlan; d.Set() {
		c.meantDefault = d.Value
		if r := c.set.byPlan[d.Value]; r != nil {
			c.set.defaultPlan = r
		} else {
			c.fail(d.Line, "default_plan", "%s", c.noPlan(d.Value))
			c.meantDefault = Nearest(d.Value, keys(c.plans))
		}
	}
	var capitals []Text
	if c.doc.Tenants != nil {
		n := 0
		c.doc.Tenants(func(spec *TenantSpec) {
			c.compileTenant(spec)
			if strings.ToLower(spec.Name.Value) != spec.Name.Value {
				capitals = append(capitals, spec.Name)
			}
			if n++; n%pauseEvery == 0 && c.opts.Pause != nil {
				c.opts.Pause()
			}
		})
	}
	c.countLifted()
	c.noteCase(capitals)
	c.set.tenants = &tenantIndex{base: c.tenants, len: len(c.tenants)}
	c.checkTenantConditions()
}

// maxNamed bounds the names in an error.
const maxNamed = 10

// noPlan returns the error for a plan that does not exist: with the plan that is nearly
// called so, or with the plans there are.
func (c *compiler) noPlan(name string) string {
	names, are := keys(c.plans), "the plans are "
	if len(names) == 1 {
		are = "the only plan is "
	}
	return "there is no plan " + Quote(name) + orThese(name, names, are, "the file has no plans")
}

// noLimit returns the error for a limit that a plan does not have.
func (p *plan) noLimit(id string) string {
	return "plan " + p.spec.Name.Value + " has no limit " + Quote(id) + orThese(id, keys(p.specs), "its limits are ", "it has none")
}

// orThese returns the end of an error about a name that does not exist: the name that is nearly the
// same, or the names there are behind a text, or another text if there are none.
func orThese(name string, names []string, are, none string) string {
	near := meantWord(name, names)
	switch {
	case near != "":
		return near
	case len(names) == 0:
		return ": " + none
	case len(names) > maxNamed:
		return fmt.Sprintf(": %s%s and %d more", are, strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
	}
	return ": " + are + strings.Join(names, ", ")
}

func (c *compiler) compileTenant(spec *TenantSpec) {
	field := "tenants." + spec.Name.Value
	if err := CheckName(spec.Name.Value); err != nil || spec.Name.Value == "-" {
		c.fail(spec.Name.Line, "tenants", "%s cannot be a tenant's name", Quote(spec.Name.Value))
		return
	}
	if strings.Contains(spec.Name.Value, "*") {
		c.warn(spec.Name.Line, field, "it is the tenant of exactly that name: tenants are listed by their full names, and default_plan is the plan of all others")
	}
	if spec.Name.Value == "default" {
		c.note(spec.Name.Line, field, "it is the tenant of exactly that name, and default_plan is the plan of tenants that are not listed")
	}
	c.warnBlanks(spec.Name, field)
	planName := spec.Plan.Value
	if !spec.Plan.Set() {
		if planName = c.meantDefault; !c.doc.DefaultPlan.Set() {
			c.fail(spec.Name.Line, field, "the tenant has no plan, and there is no default_plan: write plan: NAME")
			return
		}
	}
	p := c.plans[planName]
	if p == nil && spec.Plan.Set() {
		c.fail(spec.Plan.Line, field+".plan", "%s", c.noPlan(planName))
		p = c.plans[Nearest(planName, keys(c.plans))] // that which is meant, for the mistakes in the overrides
	}
	if p == nil {
		return // default_plan is reported once
	}
	planName = p.spec.Name.Value
	if len(spec.Overrides) == 0 {
		c.tenants[spec.Name.Value] = c.set.byPlan[planName]
		return
	}
	limits := slices.Clone(p.limits)
	for i := range spec.Overrides {
		c.override(spec, &spec.Overrides[i], p, limits)
	}
	c.warnLifted(spec, p, limits)
	c.tenants[spec.Name.Value] = c.ruleset(planName, limits, layerOverride, spec.Name.Line)
}

// ruleset groups limits, with the shared ones, by level and group. It looks for ties from a layer on: of the limits of a tenant
// only the overrides are not those of its plan, in which the others were compared.
func (c *compiler) ruleset(planName string, limits []*Limit, tieLayer int8, line int) *ruleset {
	r := &ruleset{plan: planName}
	index := map[string]int{}
	for _, l := range slices.Concat(limits, c.shared) {
		if l.Mode == ModeOff {
			r.off = append(r.off, l)
			continue
		}
		if l.everyLevel {
			r.allowing = append(r.allowing, l)
			continue
		}
		key := l.groupKey()
		i, ok := index[key]
		if !ok {
			i = len(r.groups)
			index[key] = i
			r.groups = append(r.groups, group{slots: l.slots})
		}
		r.groups[i].candidates = append(r.groups[i].candidates, l)
		r.groups[i].bans = r.groups[i].bans || l.Action == ActionDeny || len(l.Replaces) > 0
		if l.share > 0 {
			r.groups[i].candidates = append(r.groups[i].candidates, l.shadow())
		}
	}
	for i := range r.groups {
		g := r.groups[i].candidates
		slices.SortStableFunc(g, compareTurn)
		c.checkTies(g, tieLayer)
	}
	c.checkLevels(r, line)
	return r
}

// compareTurn orders limits as they are tried: by rank, and shadow limits before enforced
// ones, so that a limit in shadow mode sees the same requests as when it is enforced.
func compareTurn(a, b *Limit) int {
	if rank := compareRank(a, b); rank != 0 {
		return rank
	}
	return cmp.Compare(b.Mode, a.Mode)
}

// groupKey returns the key of the group in which l competes. A ban that counts by no
// dimension competes with no other limit, and neither does a limit that allows at every level.
func (l *Limit) groupKey() string {
	if l.everyLevel || l.Action == ActionDeny && !l.byTenant && len(l.by) == 0 {
		return "alone:" + l.ID
	}
	if l.slots { // a limit that only RL.ACQUIRE checks replaces none that other requests need
		return "slots:" + strings.Join(l.Level(), ",") + ":" + l.Group
	}
	return "level:" + strings.Join(l.Level(), ",") + ":" + l.Group
}

// checkTies reports limits of one group that are equally specific and that one request
// could match, once for each but the first of them. It compares those of a layer and above, which come first. Shadow limits
// do not compete with enforced ones.
func (c *compiler) checkTies(g []*Limit, lowest int8) {
	for i, a := range g {
		if a.layer < lowest {
			return
		}
		for _, b := range g[i+1:] {
			if compareRank(a, b) != 0 {
				break
			}
			later := b
			if a.Line > b.Line {
				later = a
			}
			if a.Mode != b.Mode || a.broken || b.broken || allowAlike(a, b) || !canMeet(a, b) || c.tied[later.entry()] {
				continue
			}
			if c.tied == nil {
				c.tied = map[entry]bool{}
			}
			c.tied[later.entry()] = true
			c.fail(later.Line, "when", "limits %s (%s) and %s (%s) are equally specific and one request could meet both: %s",
				Quote(a.ID), c.doc.At(a.Line), Quote(b.ID), c.doc.At(b.Line), tieCure(a, b))
		}
	}
}

// tieCure says what to do about two limits that are equally specific.
func tieCure(a, b *Limit) string {
	allow, other := a, b
	if b.Action == ActionAllow {
		allow, other = b, a
	}
	switch {
	case allow.Action != ActionAllow || other.Action == ActionAllow:
		return "make one more specific, give it a group of its own, or remove one"
	case len(allow.when) == 0:
		return fmt.Sprintf("say when: with the requests that %s allows, or remove one of them", Quote(allow.ID))
	}
	return fmt.Sprintf("%s allows what %s is for: give it a further condition, or remove one of them", Quote(allow.ID), Quote(other.ID))
}

// allowAlike reports whether two limits allow, so that it is the same which of them a request meets. Replaces names only what an
// allow lifts anyway, unless an override made one of a limit that replaces others.
func allowAlike(a, b *Limit) bool {
	lifts := a.layer != layerOverride && b.layer != layerOverride || len(a.Replaces)+len(b.Replaces) == 0
	return a.Action == ActionAllow && b.Action == ActionAllow && a.Missing == b.Missing && a.share+b.share == 0 && lifts
}

// entry identifies a limit by its line and its id. Limits that plans share have one entry.
type entry struct {
	line int
	id   string
}

func (l *Limit) entry() entry { return entry{l.Line, l.ID} }

// checkTenantConditions reports conditions on tenants to which the limit never applies.
func (c *compiler) checkTenantConditions() {
	for _, l := range c.set.Limits {
		if l.layer != layerPlan {
			continue
		}
		for i := range l.when {
			w := &l.when[i]
			if w.kind != propertyTenant || !w.exact {
				continue
			}
			if r := c.set.rules(w.prefix); r != nil && r.plan != l.Plan {
				c.fail(l.Line, "when.tenant", "%s cannot occur: that tenant is not on plan %s", Quote(w.prefix), l.Plan)
			}
		}
	}
}
