package limit

import (
	"fmt"
	"slices"
	"strings"
)

// noteAllows notes of each limit that allows requests which enforced limits of other levels count them all the same. One that names
// what it lifts, by replaces, is meant as it is.
func (c *compiler) noteAllows() {
	for _, note := range c.allowNotes() {
		note.write(c)
	}
}

// allowNotes returns the notes of limits that allow, in the order of the limits, as far as mostCompared limits go: one for
// those of a level that differ in their conditions alone.
func (c *compiler) allowNotes() (notes []*allowNote) {
	rivals := c.rivals()
	for _, a := range c.allows() {
		if a.Mode != ModeEnforce || a.broken || a.everyLevel || len(a.Replaces) > 0 { // it names what it lifts
			continue
		}
		var counting []string
		otherLevel := false // a limit of another group alone is meant to count what a allows
		for _, b := range c.set.Limits {
			if rivals.compared++; rivals.compared > mostCompared {
				return notes
			}
			if c.countsAllowed(a, b) && !slices.Contains(counting, Quote(b.ID)) && !rivals.replace(b, a) && !rivals.replace(a, b) {
				counting = append(counting, Quote(b.ID))
				otherLevel = otherLevel || !slices.Equal(a.Level(), b.Level())
			}
		}
		if n := len(counting); otherLevel {
			others := ""
			if n > mostCounting+1 { // one more has room in the place of its number
				counting, others = counting[:mostCounting], " and "+countOthers(n-mostCounting)
			}
			notes = addAllowNote(notes, &allowNote{of: []*Limit{a}, level: planGroup{a.Plan, a.groupKey()}, counting: strings.Join(counting, ", ") + others})
		}
	}
	return notes
}

// allowNote is a note of limits of one level that allow requests.
type allowNote struct {
	of       []*Limit
	level    planGroup
	counting string // the limits that count what they allow
}

// addAllowNote adds the note of a limit, to an equal one if there is one. Plans that include one limit have one note of it.
func addAllowNote(notes []*allowNote, note *allowNote) []*allowNote {
	for _, o := range notes {
		switch {
		case o.counting != note.counting:
		case o.level == note.level:
			o.of = append(o.of, note.of...)
			return notes
		case len(o.of) == 1 && o.of[0].entry() == note.of[0].entry():
			return notes
		}
	}
	return append(notes, note)
}

// write writes the note, at the line of its first limit.
func (n *allowNote) write(c *compiler) {
	first := n.of[0]
	name, lifts, it := Quote(first.ID), "lifts the limits of its level and group alone, and what it allows counts for", "it lifts"
	if more := len(n.of) - 1; more > 0 {
		name += " and " + countOthers(more)
		lifts, it = "lift the limits of their level and group alone, and what they allow counts for", "they lift"
	}
	cure := "leave out by: " + it + " every limit that counts then"
	switch {
	case slices.ContainsFunc(n.of, c.liftsBan):
		cure = "write another one without by, which lifts every limit that counts"
	case first.Group != "":
		cure = "leave out by and group: " + it + " every limit that counts then"
	}
	c.note(first.Line, "action", "%s %s %s. %s; otherwise %s", name, lifts, n.counting, c.ifMeant(first), cure)
}

// liftsBan reports whether a takes the place of a limit that denies, as one without by does not.
func (c *compiler) liftsBan(a *Limit) bool {
	return slices.ContainsFunc(c.set.Limits, func(l *Limit) bool {
		return l.Action == ActionDeny && l.Mode == ModeEnforce && (l.Plan == a.Plan || l.Plan == "" || a.Plan == "") && takesPlace(a, l)
	})
}

// ifMeant says how to leave a limit that allows as it is: replaces names a limit that it lifts. An override has no replaces.
func (c *compiler) ifMeant(a *Limit) string {
	for _, b := range c.set.Limits {
		if a.layer != layerOverride && b.Action == ActionLimit && b.Mode == a.Mode && b.Plan == a.Plan && b.groupKey() == a.groupKey() && b.ID != a.ID && takesPlace(a, b) && canMeet(a, b) {
			return fmt.Sprintf("If that is meant, say replaces: [%s]", b.ID)
		}
	}
	return "Leave it so if that is meant"
}

// planGroup is a group of the limits of one plan, "" for those of all.
type planGroup struct{ plan, key string }

// rivals are limits by their groups, in which the most specific one applies.
type rivals struct {
	of       map[planGroup][]*Limit
	compared int // limits that were looked at
}

// rivals returns all limits by their groups.
func (c *compiler) rivals() *rivals {
	r := &rivals{of: map[planGroup][]*Limit{}}
	for _, l := range c.set.Limits {
		group := planGroup{l.Plan, l.groupKey()}
		r.of[group] = append(r.of[group], l)
	}
	return r
}

// replace reports whether another limit takes the place of l for all requests that match l and with.
func (r *rivals) replace(l, with *Limit) bool {
	of := r.of[planGroup{l.Plan, l.groupKey()}]
	r.compared += len(of)
	return slices.ContainsFunc(of, func(other *Limit) bool {
		return other.Mode == l.Mode && takesPlace(other, l) && other.conditionsIn(l, with)
	})
}

// mostCounting bounds the limits that a note names.
const mostCounting = 3

// countsAllowed reports whether b is an enforced limit of another level or group than a, and counts requests that a allows. One for
// a tenant by name is meant to.
func (c *compiler) countsAllowed(a, b *Limit) bool {
	return b.Action == ActionLimit && b.Mode == ModeEnforce && !b.broken && !b.slots &&
		(a.Plan == b.Plan || a.Plan == "" || b.Plan == "") && a.groupKey() != b.groupKey() &&
		canMeet(a, b) && !c.hasOwn(a, b) && !c.allowed(a, b) && (!b.namesTenant() || a.namesTenant())
}

// noteAllow notes that a allows requests, and b counts some of them all the same, and others too: it is more specific. If
// it is of another group, one note of the file says so. Level has the limits of the level.
func (c *compiler) noteAllow(a, b *Limit, level []*Limit) bool {
	if a.Action != ActionAllow || a.everyLevel || len(a.Replaces) > 0 || takesPlace(a, b) || compareRank(a, b) == 0 && a.Group == b.Group || b.within(a) || c.allowed(a, b) {
		return false // equally specific ones are an error already
	}
	if a.Group == b.Group {
		c.note(a.Line, "action", "%s does not allow what %s counts, which is more specific: to allow that too, write another limit with action: allow, all conditions of both, and the group of %[2]s", Quote(a.ID), Quote(b.ID))
		return true
	}
	if b.namesTenant() && !a.namesTenant() { // a group of its own is meant to count for that tenant
		return false
	}
	replaced := func(l *Limit) bool {
		within := l.Group == a.Group && len(l.when) == len(b.when) // what b counts is thought of in the group of a
		return l.Mode == b.Mode && (takesPlace(l, b) && l.conditionsIn(a, b) || within && l.conditionsIn(b, b))
	}
	if c.notedGroup || c.hasOwn(a, b) || slices.ContainsFunc(level, replaced) {
		return false
	}
	c.notedGroup = true
	c.note(a.Line, "action", "%s does not allow what %s counts, which is of another group: to allow that too, write one without by, which lifts every limit that counts", Quote(a.ID), Quote(b.ID))
	return true
}

// liftsOther reports whether l, which allows, lifts b too, although b has a condition on something that l has none on: l is
// more specific by the length of its conditions, or as they are exact. One for a tenant by name is meant to.
func (l *Limit) liftsOther(b *Limit) bool {
	return l.Action == ActionAllow && l.Mode == ModeEnforce && takesPlace(l, b) && !l.namesTenant() && len(l.when) == len(b.when) && l.layer == b.layer &&
		slices.ContainsFunc(b.when, func(c condition) bool {
			return !slices.ContainsFunc(l.when, func(own condition) bool { return own.name == c.name })
		})
}

// warnAllowAll warns of a limit that lifts all limits for all requests of all tenants, or of a plan that has some.
func (c *compiler) warnAllowAll(l *Limit) {
	with, all := l.holdsForAll()
	if !l.everyLevel || l.Mode != ModeEnforce || !all || l.broken || l.layer == layerOverride {
		return
	}
	of := "all tenants"
	if l.Plan != "" {
		if of = "plan " + l.Plan; !slices.ContainsFunc(c.plans[l.Plan].limits, (*Limit).counts) { // it is a plan without limits
			return
		}
	}
	c.warn(l.Line, "action", "%s allows every request of %s%s, and no limit counts any: say when: with those that it allows", Quote(l.ID), of, with)
}

// noteLifted notes that a lifts b too, or notes nothing if there is no b.
func (c *compiler) noteLifted(a, b *Limit) {
	if b != nil && len(a.Replaces) == 0 {
		without := ""
		if len(b.Replaces) > 0 {
			without = " and no replaces"
		}
		c.note(a.Line, "action", "%s lifts %s too, for requests that match both: %s. %[5]s; otherwise give %[2]s a group of its own%[4]s, in which it counts them", Quote(a.ID), Quote(b.ID), a.precedence(b), without, c.ifMeant(a))
	}
}

// namesTenant reports whether l has a condition on the tenant.
func (l *Limit) namesTenant() bool {
	return slices.ContainsFunc(l.when, func(c condition) bool { return c.kind == propertyTenant })
}

// hasOwn reports whether b is a limit for requests that a allows, in place of those that a lifts: it counts nothing else there, or has
// conditions of a alone, and all of them or one on the caller, which the lifted ones lack.
func (c *compiler) hasOwn(a, b *Limit) bool {
	if (a.Plan == "" || a.Plan == b.Plan) && len(b.when) > 0 && b.within(a) { // a limit of the conditions of both would tie
		return true
	}
	if len(b.when) == 0 || !b.conditionsIn(a, a) {
		return false
	}
	return len(b.when) == len(a.when) || slices.ContainsFunc(b.when, func(of condition) bool {
		return of.name != "op" && !c.liftedConditions(a)[[2]string{of.name, of.text}]
	})
}

// liftedConditions returns the conditions, by name and text, of the enforced limits that a lifts by its level.
func (c *compiler) liftedConditions(a *Limit) map[[2]string]bool {
	if all, known := c.lift[a]; known {
		return all
	}
	all := map[[2]string]bool{}
	for _, l := range c.set.Limits {
		if l.Action == ActionLimit && l.Mode == ModeEnforce && (l.Plan == a.Plan || l.Plan == "") && l.groupKey() == a.groupKey() && takesPlace(a, l) && canMeet(a, l) {
			for i := range l.when {
				all[[2]string{l.when[i].name, l.when[i].text}] = true
			}
		}
	}
	c.lift[a] = all
	return all
}

// allowed reports whether another limit allows all requests that match a and b.
func (c *compiler) allowed(a, b *Limit) bool {
	return slices.ContainsFunc(c.allows(), func(l *Limit) bool {
		if l.everyLevel && l.Mode == ModeEnforce {
			return (l.Plan == "" || l.Plan == a.Plan || l.Plan == b.Plan) && l.matchesAll(a, b)
		}
		return l.Mode == b.Mode && (l.Plan == b.Plan || b.Plan == "" && l.Plan == a.Plan) && takesPlace(l, b) && l.matchesAll(a, b)
	})
}

// allows returns the limits with action: allow, but for those of overrides.
func (c *compiler) allows() []*Limit {
	if c.allowing == nil {
		c.allowing = []*Limit{}
		for _, l := range c.set.Limits {
			if l.Action == ActionAllow {
				c.allowing = append(c.allowing, l)
			}
		}
	}
	return c.allowing
}

// within reports whether all requests that match l match a, too.
func (l *Limit) within(a *Limit) bool {
	for i := range a.when {
		wide := &a.when[i]
		if !slices.ContainsFunc(l.when, func(c condition) bool { return c.name == wide.name && c.within(wide) }) {
			return false
		}
	}
	return true
}

// matchesAll reports whether l matches all requests that match all of others.
func (l *Limit) matchesAll(others ...*Limit) bool {
	for i := range l.when {
		within := func(c condition) bool { return c.name == l.when[i].name && c.within(&l.when[i]) }
		if !slices.ContainsFunc(others, func(o *Limit) bool { return slices.ContainsFunc(o.when, within) }) {
			return false
		}
	}
	return true
}

// conditionsIn reports whether all conditions of l are among those of a and b, so that l matches what
// both match.
func (l *Limit) conditionsIn(a, b *Limit) bool {
	for i := range l.when {
		same := func(c condition) bool { return c.name == l.when[i].name && c.text == l.when[i].text }
		if !slices.ContainsFunc(a.when, same) && !slices.ContainsFunc(b.when, same) {
			return false
		}
	}
	return true
}
