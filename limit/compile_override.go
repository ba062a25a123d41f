package limit

import (
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// override replaces one of limits by the tenant's override of it.
func (c *compiler) override(tenant *TenantSpec, o *RuleSpec, p *plan, limits []*Limit) {
	field := "tenants." + tenant.Name.Value + ".overrides"
	i := slices.IndexFunc(limits, func(l *Limit) bool { return l.ID == o.ID.Value })
	if i < 0 {
		why := p.noLimit(o.ID.Value)
		if slices.ContainsFunc(c.shared, func(l *Limit) bool { return l.ID == o.ID.Value }) {
			why = Quote(o.ID.Value) + " is shared by all tenants and cannot be overridden by one" + meantWord(o.ID.Value, keys(p.specs))
		} else if meantWord(o.ID.Value, keys(p.specs)) == "" {
			why += "; a further limit of this tenant stands in the plan, with when: {tenant: " + Shorten(tenant.Name.Value) + "}"
		}
		c.fail(o.ID.Line, field, "%s", why)
		return
	}
	if name := o.fixedField(); name != "" {
		c.fail(o.Line, field+"."+o.ID.Value, "%s cannot be overridden: only rate, slots, burst, algorithm, timezone, mode, enforce, warn, action, on_error, missing, cost, max_cost, lease and store can", name)
		return
	}
	if limits[i].Action == ActionDeny && !p.specs[o.ID.Value].BySet && o.Action.Value == "allow" {
		c.fail(o.Action.Line, field+"."+o.ID.Value, "%s denies and has no by, so that a limit with action: allow in its place would lift all limits: say mode: off to let the tenant's requests pass it", Quote(o.ID.Value))
		return
	}
	if limits[i].everyLevel && (o.Rate.Set() || o.Slots.Set()) {
		c.fail(o.Line, field+"."+o.ID.Value, "%s has no by, so that nothing can count in its place: give the tenant's limit an id of its own in plan %s, with when: {tenant: %s}", Quote(o.ID.Value), p.spec.Name.Value, Shorten(tenant.Name.Value))
		return
	}
	merged, before := merge(p.specs[o.ID.Value], o), len(c.problems)
	l := c.compileLimit(&merged, p.spec.Name.Value, layerOverride)
	c.dropRepeated(before, limits[i])
	if l == nil {
		return
	}
	if c.opts.Strict && l.Action == ActionLimit && limits[i].Action != ActionLimit {
		c.addUndecided(l)
	}
	if l.Action == ActionLimit && l.slots != limits[i].slots {
		c.fail(o.Line, field+"."+o.ID.Value, "a limit of concurrency stays one, and no other becomes one, for a tenant: give it an id of its own")
	}
	c.warnCalendar(o, field, limits[i], l)
	c.noteBurst(o, field, limits[i], l)
	c.warnOwnShare(o, field, l)
	c.warnOwnLocal(o, field, limits[i], l)
	c.warnStaysOff(o, field, l)
	l.Tenant, l.slots, l.Order = tenant.Name.Value, limits[i].slots, limits[i].Order
	limits[i] = l
}

// warnStaysOff warns of an override of a limit of mode off that leaves it so: it has no effect. It warns once for a limit.
func (c *compiler) warnStaysOff(o *RuleSpec, field string, l *Limit) {
	if l.Mode != ModeOff || o.Mode.Set() || o.Enforce.Set() {
		return
	}
	text := fmt.Sprintf("%s has mode: off in plan %s, and stays off for this tenant: add mode: enforce to the override if it is to hold", Quote(l.ID), l.Plan)
	c.warnOnce([3]string{l.Plan, l.ID, "stays off"}, o.Line, field+"."+l.ID, text)
}

// warnOnce warns of an override, unless it has warned of the same: countLifted counts further tenants.
func (c *compiler) warnOnce(of [3]string, line int, field, text string) {
	if known := c.lifted[of]; known != nil {
		known.more++
		return
	}
	if c.lifted == nil {
		c.lifted = map[[3]string]*lifting{}
	}
	c.warn(line, field, "%s", text)
	c.lifted[of] = &lifting{warning: len(c.warnings) - 1}
}

// dropRepeated drops, of the mistakes from a number on, those that an overridden limit has too.
func (c *compiler) dropRepeated(from int, overridden *Limit) {
	known := c.mistakes[overridden.entry()]
	if len(known) == 0 {
		return
	}
	c.problems = append(c.problems[:from], slices.DeleteFunc(c.problems[from:], func(p Problem) bool {
		return slices.ContainsFunc(known, func(k Problem) bool { return k.Field == p.Field && k.Text == p.Text })
	})...)
}

// fixedField returns a field of an override that no override may have, or "".
func (o *RuleSpec) fixedField() string {
	switch {
	case o.BySet:
		return "by"
	case len(o.When) > 0:
		return "when"
	case o.Group.Set():
		return "group"
	case len(o.Replaces) > 0:
		return "replaces"
	}
	return ""
}

// warnLifted warns if an override of one limit takes the place of another one of the plan, which held for the tenant before: at most once
// for each pair of limits.
func (c *compiler) warnLifted(tenant *TenantSpec, p *plan, limits []*Limit) {
	for _, a := range limits {
		if a.Tenant == "" || a.Mode == ModeOff || a.broken {
			continue
		}
		overridden := withID(p.limits, a.ID)
		for _, b := range limits {
			if c.comparedOverrides++; c.comparedOverrides > mostCompared {
				return
			}
			pair := [3]string{a.Plan, a.ID, b.ID}
			lost, cure := liftedBy(a, b, overridden)
			if lost == "" {
				continue
			}
			c.warnOnce(pair, a.Line, "tenants."+tenant.Name.Value+".overrides."+a.ID, fmt.Sprintf("the override of %s takes the place of %s too, which then %s: %s", Quote(a.ID), Quote(b.ID), lost, cure))
		}
	}
}

// lifting is the warning of a pair of limits, and for how many more tenants it holds.
type lifting struct{ warning, more int }

// countLifted adds to the warnings of warnLifted for how many more tenants they hold.
func (c *compiler) countLifted() {
	for _, l := range c.lifted {
		switch l.more {
		case 0:
		case 1:
			c.warnings[l.warning].Text += "; it is the same for 1 more tenant"
		default:
			c.warnings[l.warning].Text += fmt.Sprintf("; it is the same for %d more tenants", l.more)
		}
	}
}

// liftedBy says what a limit of the plan does not do for the tenant, since the override of another one takes its place, and what to
// write; "" if the overridden limit did so before, or the tenant loses nothing.
func liftedBy(override, of, overridden *Limit) (lost, cure string) {
	if of.Tenant != "" || !takesPlace(override, of) || takesPlace(overridden, of) && overridden.Mode == override.Mode {
		return "", ""
	}
	switch {
	case of.Mode == ModeShadow && override.Mode == ModeEnforce:
		if of.Action != ActionLimit {
			return "", ""
		}
		lost = "watches nothing of the tenant"
	case len(of.when) == 0, of.Mode != override.Mode, override.Action == ActionDeny, override.Action == ActionAllow && of.Action == ActionAllow:
		return "", ""
	case of.Action == ActionAllow:
		return "allows nothing of the tenant", fmt.Sprintf("override it as well, with %s: {action: allow}", of.ID)
	case of.Action == ActionDeny:
		lost = "denies nothing of the tenant"
	default:
		lost = "does not count for the tenant"
	}
	return lost, fmt.Sprintf("give %s a group of its own, or override it as well", Quote(of.ID))
}

// merge returns the limit base with the fields that the override sets.
func merge(base, o *RuleSpec) RuleSpec {
	m := *base
	m.Line, m.ID = o.Line, o.ID
	if o.Action.Set() { // the limit stops counting
		m.Rate, m.Slots, m.Burst, m.Algorithm, m.Cost, m.MaxCost, m.Timezone, m.Warn = Text{}, Text{}, Text{}, Text{}, Text{}, Text{}, Text{}, Text{}
		m.Lease, m.Store = LeaseSpec{}, Text{}
	} else if o.Rate.Set() {
		m.Action = Text{}
		if r, err := bucket.ParseRate(o.Rate.Value); err == nil && r.Calendar == bucket.NotCalendar {
			m.Timezone = Text{}
		}
	}
	if o.Mode.Set() {
		m.Enforce = Text{}
	}
	if o.Enforce.Set() {
		m.Mode = Text{}
	}
	if o.Algorithm.Set() && o.Algorithm.Value != bucket.AlgorithmTokenBucket.String() { // only a token bucket has one
		m.Burst = Text{}
	}
	for _, f := range []struct{ to, from *Text }{
		{&m.Rate, &o.Rate},
		{&m.Slots, &o.Slots},
		{&m.Burst, &o.Burst},
		{&m.Algorithm, &o.Algorithm},
		{&m.Mode, &o.Mode},
		{&m.Enforce, &o.Enforce},
		{&m.Warn, &o.Warn},
		{&m.Action, &o.Action},
		{&m.OnError, &o.OnError},
		{&m.Missing, &o.Missing},
		{&m.Timezone, &o.Timezone},
		{&m.Cost, &o.Cost},
		{&m.MaxCost, &o.MaxCost},
		{&m.Store, &o.Store},
	} {
		switch {
		case f.from.Set():
			*f.to = *f.from
		case f.to.Set(): // mistakes in it are mistakes of the override
			f.to.Line = o.Line
		}
	}
	if o.Lease.Set() {
		m.Lease = o.Lease
	}
	return m
}
