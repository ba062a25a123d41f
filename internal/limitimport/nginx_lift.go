package limitimport

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxLifted bounds the limits that liftAll adds. Beyond it a remark advises each.
const maxLifted = 500

// liftAll adds limits with action: allow for the requests that a limit counts here and not in nginx, where these lift that limit
// alone.
func (n *nginx) liftAll() {
	n.eachLeftOut(func(inner, outer *limitRequest) {
		if n.countsAt(inner, outer) {
			n.lift(outer, inner.context, n.region(inner.context))
		}
	})
	n.eachBeside(func(r *limitRequest, c *nginxContext, region []condition, _ []*limitRequest) {
		if n.counts(&r.limit, region) {
			n.lift(r, c, region)
		}
	})
	n.eachAnswered(n.lift)
	byContext := n.byContext()
	n.eachUnnamed(func(r *limitRequest, c *nginxContext, region []condition) {
		if c.server.listensWhere(r.server) && len(n.lostAt(r, c, byContext)) == 0 {
			n.lift(r, c, region)
		}
	})
	n.eachDry(func(c *nginxContext, _, enforced []*limitRequest) {
		for _, r := range enforced {
			n.lift(r, c, n.region(c))
		}
	})
}

// countsAt reports whether the limit of an outer limit_req counts all requests here of the context of an inner one.
func (n *nginx) countsAt(inner, outer *limitRequest) bool {
	region := n.region(inner.context)
	return inner.imported && len(region) > 0 && n.counts(&outer.limit, region)
}

// lift adds a limit that lifts that of a limit_req for a region of a location, if it lifts no other one.
func (n *nginx) lift(r *limitRequest, c *nginxContext, region []condition) {
	allow, beside, why := n.lifting(r, c, region)
	if why != "" || beside != nil && !c.isDry() || n.lifted >= maxLifted || n.liftedWith(r, c) != "" || n.losesIn(region) {
		return
	}
	allow.id = r.limit.id + "-" + c.idPart() + "-allow"
	inside := n.inside(&allow)
	if slices.ContainsFunc(inside, func(l imported) bool { return n.liftsOther(r, &allow, &l) }) {
		return
	}
	for _, l := range append([]imported{allow}, inside...) {
		if n.draft.add(l) {
			n.lifted++
			n.limits = append(n.limits, l)
		}
	}
	n.remarkConditions(c, allow.when)
}

// losesIn reports whether a limit that nginx counts for requests of a region does not count them here, so that another one stands
// in for it. Where there is too much to compare one may.
func (n *nginx) losesIn(region []condition) bool {
	there := imported{when: region}
	return slices.ContainsFunc(n.contexts, func(at *nginxContext) bool {
		from := at.limiting()
		if n.compared++; n.compared > maxHidden {
			return true
		}
		if from == nil || at.divided || !at.hasRequests() || at.isDry() {
			return false
		}
		of := n.region(at)
		return there.covers(of) && slices.ContainsFunc(n.requests, func(o limitRequest) bool {
			return o.context == from && o.imported && !o.limit.shadow && !n.counts(&o.limit, of)
		})
	})
}

// liftsOther reports whether a limit for a network inside lifts another limit than that of r, which allow does not lift.
func (n *nginx) liftsOther(r *limitRequest, allow, inside *imported) bool {
	return slices.ContainsFunc(n.requests, func(o limitRequest) bool {
		n.compared++
		return o.imported && !o.limit.equals(&r.limit) && inside.takesPlaceOf(&o.limit) && !allow.takesPlaceOf(&o.limit) && o.limit.meets(inside.when)
	})
}

// idPart returns what stands for a location or a server in the id of a limit.
func (c *nginxContext) idPart() string {
	if c.name == "server" && c.server.isNamed() {
		return c.server.names[0]
	}
	return cmp.Or(strings.Trim(c.location.path, "/"), "root")
}

// inside returns limits that lift what one leaves: limits for networks that are inside of exempt ones, where the limit that it
// lifts has these, or another one in whose place it stands.
func (n *nginx) inside(allow *imported) (allows []imported) {
	for i := range n.requests {
		r := &n.requests[i]
		if !r.imported || r.exempting == nil || r.limit.shadow || !allow.takesPlaceOf(&r.limit) || !r.limit.meets(allow.when) {
			continue
		}
		limits, _ := n.exemptions(r, r.nested)
		for _, l := range limits {
			inside := *allow
			inside.when = append(slices.Clip(allow.when), l.when[len(l.when)-1])
			if l.action == "" && !slices.ContainsFunc(allows, func(o imported) bool { return o.equals(&inside) }) {
				allows = append(allows, inside)
			}
		}
	}
	return allows
}

// lifting returns a limit with action: allow that lifts that of a limit_req for a region of a location, or the reason why there
// is none. An allow lifts all limits of its level and group, so that there is none where another one may count there, or where
// nginx counts some of its requests. Beside is the limit_req, or nil, whose rate a limit needs that stands in its place.
func (n *nginx) lifting(r *limitRequest, c *nginxContext, region []condition) (allow imported, beside *limitRequest, why string) {
	if c.location.isRegexp() {
		return allow, nil, "a limits file has no regular expressions"
	}
	there := imported{when: region}
	allow = r.limit.allow()
	allow.when = withoutRoot(region)
	for _, on := range r.limit.when {
		if !slices.ContainsFunc(region, func(o condition) bool { return o.dimension == on.dimension }) {
			allow.when = append(allow.when, on) // of one method
		}
	}
	counted := func(at *nginxContext) bool {
		switch {
		case at.server != c.server && n.hostOf(c.server) != "" && at.server != nil && n.hostOf(at.server) == "":
			return false // it has other hosts
		case at.server != c.server || r.server != nil && r.server != c.server:
			return there.meets(n.region(at)) // the region is that of no location there
		}
		return !at.location.isRegexp() && there.covers(n.region(at))
	}
	if other := n.otherServers(&allow, c); other != nil {
		return allow, nil, n.noLift(c, fmt.Sprintf("a limit that lifts it lifts that of line %d too", other.line))
	}
	if n.sharesHost(c.server) && n.hostOf(c.server) != "" {
		return allow, nil, n.noLift(c, "several servers have its host")
	}
	enforced := func(at *nginxContext) bool { return counted(at) && !(c.isDry() && at.isDry()) }
	counts := func(o limitRequest) bool { // by the same limit
		return o.imported && o.limit.equals(&r.limit) && slices.ContainsFunc(o.counts, enforced)
	}
	if !allow.takesPlaceOf(&r.limit) || slices.ContainsFunc(n.requests, counts) {
		return allow, nil, n.noLift(c, "")
	}
	if at := n.notImported(c); at > 0 {
		return allow, nil, n.noLift(c, fmt.Sprintf("that on line %d, which nginx has there, is not imported", at))
	}
	beside, ok := n.limitBeside(&allow, r, c, region, counted)
	if !ok {
		return allow, nil, n.noLift(c, "")
	}
	if beside != nil && !c.isDry() && n.servers > 1 && c.server != nil && n.hostOf(c.server) == "" {
		return allow, nil, n.noLift(c, "a limit in its place counts requests of other servers too")
	}
	return allow, beside, ""
}

// noLift says that no limit lifts one for the requests of a context, for a reason, and advises a limit where none of nginx counts
// them here.
func (n *nginx) noLift(c *nginxContext, reason string) string {
	from := c.limiting()
	limited := from != nil && slices.ContainsFunc(n.requests, func(r limitRequest) bool { return r.imported && r.context == from })
	switch {
	case !limited && reason == "":
		return writeLimit
	case !limited:
		return writeLimit + ": " + reason
	case reason == "":
		return noLimit + " and changes nothing else"
	}
	return noLimit + ": " + reason
}
