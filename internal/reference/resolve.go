package reference

import (
	"fmt"
	"slices"
	"strings"
)

// considered is a limit of a request's tenant, or a shared one, and its fate for this
// request.
type considered struct {
	*limit
	key string
	// lacks is a dimension by which the limit counts and which the request lacks.
	lacks string
	// fate is the reason, for a trace, why the limit does not apply, and is empty
	// otherwise.
	fate string
	// shadow is set if the limit is evaluated without effect on the decision.
	shadow bool
}

// applies reports whether the limit applies, if only as a shadow.
func (c *considered) applies() bool { return c.fate == "" }

// enforced reports whether the limit applies and affects the decision.
func (c *considered) enforced() bool { return c.applies() && !c.shadow }

// refuses reports whether the limit refuses the request whatever its buckets contain.
func (c *considered) refuses() bool {
	return c.enforced() && (c.action == "deny" || c.action == "" && c.lacks != "" && c.missing == "deny")
}

// resolve returns the fate of each limit for a request, in the order in which limits
// bind. Limits of concurrency are for RL.ACQUIRE only.
func (l *limits) resolve(r Request, slots bool) []*considered {
	var all []*considered
	for _, rule := range l.ofTenant(r.Tenant) {
		c := &considered{limit: l.forRequest(r, rule)}
		c.key, c.lacks = l.bucketKey(r, rule)
		c.fate = l.passesOver(r, c, slots)
		all = append(all, c)
	}
	compete(all)
	replace(all)
	lift(all)
	return all
}

// passesOver returns why a limit is not a candidate for a request.
//
// Not documented: a limit that is off or passed over does not compete, so that a less
// specific one of its group applies.
func (l *limits) passesOver(r Request, c *considered, slots bool) string {
	if c.mode == "off" {
		return "off"
	}
	if c.concurrent() && !slots {
		return "concurrency"
	}
	for _, condition := range c.when {
		value, present := l.value(r, condition.dimension)
		if !present || !condition.matches(value) {
			return "when " + condition.dimension
		}
	}
	if c.lacks != "" && c.missing == "pass" {
		return "no " + c.lacks
	}
	return ""
}

// compete keeps the most specific limit of each contest. If that is a shadow, the most
// specific one of the others decides instead.
//
// Not documented: a shadow that is less specific than an enforced limit of its group is
// passed over.
func compete(all []*considered) {
	contests := map[string][]*considered{}
	for _, c := range all {
		if c.applies() {
			contests[c.contest()] = append(contests[c.contest()], c)
		}
	}
	for _, contest := range contests {
		first := mostSpecific(contest)
		decides := mostSpecific(slices.DeleteFunc(slices.Clone(contest), func(c *considered) bool {
			return c.mode == "shadow"
		}))
		for _, c := range contest {
			switch c {
			case decides:
			case first:
				c.shadow = true
			default:
				c.fate = "less specific than " + first.id
			}
		}
	}
}

// contest identifies the limits with which a limit competes: those of its level and
// group. Limits of concurrency compete only with each other.
//
// Not documented: a chain is a dimension of its own in a level, and the order of by does
// not matter. A ban without by competes with no limit: it refuses wherever its conditions
// are met. An action: allow passes its group of the level and leaves the others.
func (c *considered) contest() string {
	if c.everyLevel || c.action == "deny" && len(c.by) == 0 {
		return "alone " + c.id
	}
	return fmt.Sprintf("%q %q %v", strings.Join(c.by, ","), c.group, c.concurrent())
}

// mostSpecific returns the first of the most specific limits.
func mostSpecific(contest []*considered) *considered {
	var best *considered
	for _, c := range contest {
		if best == nil || slices.Compare(c.specificity(), best.specificity()) > 0 {
			best = c
		}
	}
	return best
}

// specificity returns the criteria of a limit's specificity, the most important first.
//
// Not documented: the last one is that of a shadow, so that it is tried beside a limit to which it is
// equal otherwise.
func (l *limit) specificity() []int {
	exact, length, shadow := 0, 0, 0
	for _, c := range l.when {
		if c.exact() {
			exact++
		}
		length += c.length()
	}
	if l.mode == "shadow" {
		shadow = 1
	}
	return []int{int(l.rank), len(l.when), exact, length, shadow}
}

// replace removes the limits that another one replaces.
func replace(all []*considered) {
	replaced := map[*considered]string{}
	for _, c := range all {
		if by := replacing(c, all, nil); c.applies() && by != "" {
			replaced[c] = by
		}
	}
	for c, by := range replaced {
		c.fate = "replaced by " + by
	}
}

// lift removes the limits that count, shadows too, where an action: allow without by applies. It leaves the bans.
func lift(all []*considered) {
	for _, by := range all {
		if !by.everyLevel || !by.enforced() {
			continue
		}
		for _, c := range all {
			if c.applies() && c.action == "" {
				c.fate = "allowed by " + by.id
			}
		}
	}
}

// replacing returns the id of a limit that applies and replaces another.
//
// Not documented: a replaced limit replaces nothing itself, and neither does a shadow.
// The group of a replaced limit does not fall back to a less specific one.
func replacing(c *considered, all []*considered, seen []*considered) string {
	for _, by := range all {
		if !by.enforced() || by.list != c.list || by == c || slices.Contains(seen, by) {
			continue
		}
		if slices.Contains(by.replaces, c.id) && replacing(by, all, append(seen, c)) == "" {
			return by.id
		}
	}
	return ""
}
