package limitimport

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxOuterCompared bounds how many pairs of limit_req eachLeftOut compares.
const maxOuterCompared = 100_000

// remarkOuter remarks on limit_req of outer contexts that count here where an inner one stands.
func (n *nginx) remarkOuter() { n.eachLeftOut(n.remarkLeftOut) }

// eachLeftOut calls yield with each limit_req of an outer context that counts here where an inner one stands: nginx leaves
// the outer one out there, and a limit here takes the place only of one that counts by the same. One limit_req of
// a context speaks for all of them, an imported one if there is one.
func (n *nginx) eachLeftOut(yield func(inner, outer *limitRequest)) {
	byContext := n.byContext()
	compared, done := 0, map[*nginxContext]bool{}
	for i := range n.requests {
		inner := &n.requests[i]
		beside := byContext[inner.context]
		if _, mistake := n.zoneOf(inner); mistake != "" || done[inner.context] || len(inner.context.counted) == 0 || !inner.imported && slices.ContainsFunc(beside, (*limitRequest).isImported) {
			continue
		}
		done[inner.context] = true
		for c := inner.context.outer; c != nil; c = c.outer {
			for _, outer := range byContext[c] {
				if compared++; compared > maxOuterCompared {
					return
				}
				if outer.imported && outer.repeated == nil && !isOneOf(outer, beside) && slices.ContainsFunc(inner.context.counted, func(c *nginxContext) bool { return n.counts(&outer.limit, n.region(c)) }) {
					yield(inner, outer)
				}
			}
		}
	}
}

// isImported reports whether a limit_req is imported.
func (r *limitRequest) isImported() bool { return r.imported }

// byContext returns the limit_req of each context.
func (n *nginx) byContext() map[*nginxContext][]*limitRequest {
	out := map[*nginxContext][]*limitRequest{}
	for i := range n.requests {
		r := &n.requests[i]
		out[r.context] = append(out[r.context], r)
	}
	return out
}

// remarkLeftOut remarks on an outer limit_req that counts here where an inner one stands.
func (n *nginx) remarkLeftOut(inner, outer *limitRequest) {
	how := "both count"
	if !inner.imported {
		how = "that one counts"
	}
	lift := ""
	if region := n.region(inner.context); n.countsAt(inner, outer) {
		switch advice := n.liftedBy(outer, inner.context, region, inner.line); {
		case strings.HasPrefix(advice, noLimit):
			lift = "; " + advice
		case !strings.HasPrefix(advice, writeLimit): // the inner one stands there
			lift = ": " + advice
		}
	}
	where := "where this limit_req stands"
	if inner.inherited > 0 {
		where = fmt.Sprintf("in the %s on line %d, which inherits this limit_req", inner.context.name, inner.context.line)
	}
	n.remark(inner.line, "%s, nginx leaves out that of zone %s on line %d; here %s%s", where, limit.Shorten(outer.zone), outer.line, how, lift)
}

// isOneOf reports whether the limit of a limit_req is that of one of others.
func isOneOf(r *limitRequest, others []*limitRequest) bool {
	return slices.ContainsFunc(others, func(o *limitRequest) bool {
		return o == r || r.isInheritedWith(o) || o.imported && o.limit.equals(&r.limit) || r.repeats(o) && o.context.enforced == r.context.enforced
	})
}

// remarkBeside remarks on the locations that nginx matches before that of a limit_req, and whose requests
// have its limit here.
func (n *nginx) remarkBeside() { n.eachBeside(n.remarkBesideOf) }

// eachBeside calls yield with each location that nginx matches before that of a limit_req, a region of its requests, and the
// limit_req that they have. eachLeftOut has the locations inside of that of the limit_req.
func (n *nginx) eachBeside(yield func(r *limitRequest, c *nginxContext, region []condition, others []*limitRequest)) {
	byContext := n.byContext()
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported || r.context.name != "location" || r.context.location.modifier == "=" {
			continue
		}
		longer := map[*nginxContext][]*nginxContext{}
		for _, c := range n.contexts {
			if c.name != "location" || c.isInside(r.context) || !c.matchesBefore(r.context) || isOneOf(r, byContext[c.limiting()]) && !n.losesOther(r, c, byContext[c.limiting()]) {
				continue
			}
			regions := []*nginxContext{c}
			if c.location.isRegexp() && r.context.keepsRegexp(c) {
				if longer[c.outer] == nil {
					longer[c.outer] = n.longer(r.context, c.outer)
				}
				regions = longer[c.outer]
			}
			for _, at := range regions {
				yield(r, c, n.region(at), byContext[c.limiting()])
			}
		}
	}
}

// losesOther reports whether another limit_req of a location than r, of others, does not count its requests here, nor another one
// in its place: a limit that keeps the place of that of r lifts it.
func (n *nginx) losesOther(r *limitRequest, c *nginxContext, others []*limitRequest) bool {
	region := n.region(c)
	return slices.ContainsFunc(others, func(o *limitRequest) bool {
		keeps := func(l imported) bool { return l.id == liftID(o, r) }
		return o.imported && slices.ContainsFunc(o.lifts, keeps) && !o.repeats(r) && !slices.ContainsFunc(n.requests, func(same limitRequest) bool {
			return same.imported && !same.limit.shadow && same.limit.hasPlaceOf(&o.limit) && n.counts(&same.limit, region)
		})
	})
}

// remarkAnswered remarks on locations whose requests a return answers, and that have limits of outer contexts here.
func (n *nginx) remarkAnswered() {
	n.eachAnswered(func(r *limitRequest, c *nginxContext, region []condition) {
		n.remark(c.line, "nginx answers the requests of location %s by return, before it counts them; here those of zone %s on line %d count: %s", limit.Shorten(c.location.path), limit.Shorten(r.zone), r.line, n.liftedBy(r, c, region, c.line))
	})
}

// eachAnswered calls yield with each location whose requests a return answers, and each limit_req that counts them here.
func (n *nginx) eachAnswered(yield func(r *limitRequest, c *nginxContext, region []condition)) {
	for _, c := range n.contexts {
		if !c.returns || c.name != "location" || c.isAnsweredAround() {
			continue
		}
		region := n.region(c)
		for i := range n.requests {
			if r := &n.requests[i]; r.imported && (c == r.context || c.isInside(r.context)) && n.counts(&r.limit, region) {
				yield(r, c, region)
			}
		}
	}
}

// remarkAnswering remarks once on what answers some requests of limits before they count.
func (n *nginx) remarkAnswering() {
	limited := map[*nginxContext]bool{} // contexts with imported limit_req, and those around them
	for i := range n.requests {
		if r := &n.requests[i]; r.imported {
			for c := r.context; c != nil && !limited[c]; c = c.outer {
				limited[c] = true
			}
		}
	}
	byContext := n.byContext()
	var lines []int
	for _, a := range n.answering {
		if limited[a.context] || slices.ContainsFunc(byContext[a.context.limiting()], (*limitRequest).isImported) {
			lines = append(lines, a.line)
		}
	}
	if len(lines) > 0 {
		n.remark(lines[0], "nginx answers requests by return or rewrite on %s before it counts them; here they count, if services ask about them", listOfLines(lines))
	}
}

// matchesBefore reports whether nginx matches a location before another one of its server, for some paths.
func (c *nginxContext) matchesBefore(other *nginxContext) bool {
	switch {
	case c == other || c.server != other.server:
		return false
	case !c.location.isRegexp():
		return strings.HasPrefix(c.location.path, other.location.path)
	case c.outer.name == "location" && !c.outer.location.isRegexp() && other != c.outer && !other.isInside(c.outer) &&
		!strings.HasPrefix(c.outer.location.path, other.location.path):
		return false // it is tried only for requests of its outer location
	}
	return c.location.mayMatch(other.location.path)
}

// keepsRegexp reports whether a location, or the one around it, has the modifier ^~, by which nginx does not try
// a regular expression beside it.
func (c *nginxContext) keepsRegexp(other *nginxContext) bool {
	for ; c != nil; c = c.outer {
		if c.outer == other.outer {
			return c.location.modifier == "^~"
		}
	}
	return false
}

// longer returns the locations in a context that have paths of another location, and for which nginx tries the
// regular expressions in that context.
func (n *nginx) longer(other, in *nginxContext) []*nginxContext {
	out := []*nginxContext{}
	for _, c := range n.contexts {
		if c.name == "location" && c.outer == in && c.location.modifier == "" && strings.HasPrefix(c.location.path, other.location.path) {
			out = append(out, c)
		}
	}
	return out
}

// remarkBesideOf remarks on a location that nginx matches before that of a limit_req, for requests of a region,
// which have others there.
func (n *nginx) remarkBesideOf(r *limitRequest, c *nginxContext, region []condition, others []*limitRequest) {
	at, path := r.context.location, limit.Shorten(c.location.path)
	admits := r.allows && !c.isDry() && slices.ContainsFunc(others, func(o *limitRequest) bool { return n.isAdmittedBy(r, o, region) })
	switch {
	case admits:
		n.remark(c.location.line, "nginx matches location %s before %s, where limit_req_dry_run admits all: here its requests are admitted too; write a limit for it", path, limit.Shorten(at.path))
	case n.counts(&r.limit, region):
		how := "too"
		if lines := n.lostTo(r, region, others); len(lines) > 0 {
			how = "in place of that on " + listOfLines(lines)
		}
		n.remark(c.location.line, "nginx matches location %s before %s, whose limit by zone %s its requests have here %s: %s", path, limit.Shorten(at.path), limit.Shorten(r.zone), how, n.liftedBy(r, c, region, c.location.line))
	}
}

// lostTo returns the lines of limit_req, of others, whose limits that of r takes the place of for requests of a region. If it
// takes the place of none, it returns those that another limit lifts there.
func (n *nginx) lostTo(r *limitRequest, region []condition, others []*limitRequest) (lines []int) {
	for _, o := range others {
		if !o.imported || o.limit.shadow || n.counts(&o.limit, slices.Concat(region, r.limit.when)) {
			continue
		}
		if r.limit.takesPlaceOf(&o.limit) {
			return []int{o.line}
		}
		lines = append(lines, o.line)
	}
	slices.Sort(lines)
	return lines
}

// isAdmittedBy reports whether requests of a region, which have another limit_req in nginx, do not count for
// it here, as the limit that admits those of r is more specific.
func (n *nginx) isAdmittedBy(r, other *limitRequest, region []condition) bool {
	allow := r.limit.allow()
	if !other.limit.hasPlaceOf(&allow) || other.imported && (other.limit.shadow || allow.compareRank(&other.limit) >= 0) {
		return false
	}
	same := func(o limitRequest) bool {
		return o.imported && !o.limit.shadow && o.repeats(other) && n.counts(&o.limit, region)
	}
	return (other.imported || !slices.ContainsFunc(n.requests, same)) && n.counts(&allow, region)
}

// remarkShared remarks on limits that were imported of several limit_req with one zone.
func (n *nginx) remarkShared() {
	for _, name := range slices.Sorted(maps.Keys(n.uses)) {
		if lines := n.uses[name]; len(lines) > 1 {
			of := "the limit_req on " + listOfLines(lines) + " share"
			switch one := slices.Max(lines) == lines[0]; {
			case one && n.isInherited(name, lines[0]):
				of = "the locations that inherit this limit_req share"
			case one:
				of = "several limit_req of this line share"
			}
			n.remark(lines[0], "%s the units of zone %s in nginx; here each has its own, so that they admit more together%s", of, limit.Shorten(name), n.shareAgain(name, lines[0]))
		}
	}
}

// shareAgain says how the limits of a zone admit no more than in nginx: by one limit, if no other one has its place, or by parts
// of the rate. Line is that of the remark.
func (n *nginx) shareAgain(zone string, line int) string {
	parts := "; where that matters, give each of them a part of the rate"
	var first *limitRequest
	for i := range n.requests {
		r := &n.requests[i]
		switch {
		case r.zone != zone || !r.imported:
			continue
		case first == nil:
			first = r
		}
		if r.burst != first.burst || r.limit.shadow || r.exempting != nil || r.limit.group != "" || !n.hasPlace(r) {
			return parts
		}
	}
	one := imported{id: zone, by: first.limit.by, when: []condition{{"zone", zone}}, rate: first.limit.rate, burst: first.limit.burst, missing: first.limit.missing}
	n.nameAdvised(&one, line)
	n.advised = append(n.advised, one.when...)
	return "; where that matters, write one in their place, " + one.line() + ", and services send DIM zone " + quoted(zone) + " with the requests of these blocks"
}

// hasPlace reports whether only limits of its zone have the place of a limit_req, and none lifts them.
func (n *nginx) hasPlace(r *limitRequest) bool {
	if slices.ContainsFunc(n.limits, func(o imported) bool { n.compared++; return o.action != "" && o.hasPlaceOf(&r.limit) }) {
		return false
	}
	return !slices.ContainsFunc(n.requests, func(o limitRequest) bool {
		n.compared++
		return o.imported && o.zone != r.zone && o.limit.hasPlaceOf(&r.limit)
	})
}

// isInherited reports whether limits of a zone are of one limit_req that locations inherit.
func (n *nginx) isInherited(zone string, line int) bool {
	return slices.ContainsFunc(n.requests, func(r limitRequest) bool { return r.zone == zone && r.line == line && r.inherited > 0 })
}

// listOfLines lists lines in order, as "lines 3, 7".
func listOfLines(lines []int) string {
	lines = slices.Compact(slices.Clone(lines))
	if len(lines) == 1 {
		return "line " + namedLines(lines)
	}
	return "lines " + namedLines(lines)
}

// remarkDry remarks on limit_req_dry_run in contexts that take their limit_req from an outer one, where
// it is not on: the limit is one for all of them.
func (n *nginx) remarkDry() {
	n.eachDry(func(c *nginxContext, of, enforced []*limitRequest) {
		if len(enforced) > 0 {
			n.remark(c.dryLine, "limit_req_dry_run is on for some requests of limit_req on %s, which is enforced here for all of them", listOfLines(linesOf(enforced)))
			return
		}
		n.remark(c.dryLine, "limit_req_dry_run is on for some requests of limit_req on %s: they are admitted here, and no limit watches them", listOfLines(linesOf(of)))
	})
}

// eachDry calls yield with each context that takes its limit_req from an outer one, and where alone limit_req_dry_run is on. Of
// has these limit_req, and enforced those, or others that repeat them, whose limits count its requests here.
func (n *nginx) eachDry(yield func(c *nginxContext, of, enforced []*limitRequest)) {
	byContext := n.byContext()
	for _, c := range n.contexts {
		from := c.limiting()
		if c.dryLine == 0 || !c.dry || c.limits > 0 || from == nil || from.isDry() || !from.enforced {
			continue
		}
		of := slices.DeleteFunc(slices.Clone(byContext[from]), func(r *limitRequest) bool { return !r.imported })
		var enforced []*limitRequest
		region := n.region(c)
		for i := range n.requests {
			r := &n.requests[i]
			if r.imported && !r.limit.shadow && r.limit.meets(region) && isOneOf(r, of) && n.counts(&r.limit, region) {
				enforced = append(enforced, r)
			}
		}
		if len(of) > 0 {
			yield(c, of, enforced)
		}
	}
}

// linesOf returns the lines of limit_req, in order.
func linesOf(requests []*limitRequest) (lines []int) {
	for _, r := range requests {
		lines = append(lines, r.line)
	}
	slices.Sort(lines)
	return lines
}
