package limitimport

import (
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
}

// countsAt reports whether the limit of an outer limit_req counts all requests here of the context of an inner one.
func (n *nginx) countsAt(inner, outer *limitRequest) bool {
	region := n.region(inner.context)
	return inner.imported && len(region) > 0 && n.counts(&outer.limit, region)
}

// lift adds a limit that lifts that of a limit_req for a region of a location, if it lifts no other one.
func (n *nginx) lift(r *limitRequest, c *nginxContext, region []condition) {
	allow, beside, why := n.lifting(r, c, region)
	if why != "" || beside != nil || c.isDry() || n.lifted == maxLifted || n.liftedWith(c) != "" {
		return
	}
	allow.id = r.limit.id + "-" + strings.Trim(c.location.path, "/") + "-allow"
	for _, l := range append([]imported{allow}, n.inside(r, allow)...) {
		if n.draft.add(l) {
			n.lifted++
			n.limits = append(n.limits, l)
		}
	}
	n.remarkConditions(c, allow.when)
}

// inside returns limits that lift what one leaves: the limits of a limit_req for networks that are inside of exempt ones.
func (n *nginx) inside(r *limitRequest, allow imported) (allows []imported) {
	if r.exempting == nil {
		return nil
	}
	limits, _ := n.exemptions(r, r.alone)
	for _, l := range limits {
		if l.action == "" {
			inside := allow
			inside.when = append(slices.Clip(allow.when), l.when[len(l.when)-1])
			allows = append(allows, inside)
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
	counted := func(c *nginxContext) bool { return !c.location.isRegexp() && there.covers(n.region(c)) }
	if other := n.otherServers(&allow, c); other != nil {
		return allow, nil, fmt.Sprintf("%s: a limit that lifts it lifts that of line %d too", writeLimit, other.line)
	}
	if !allow.takesPlaceOf(&r.limit) || slices.ContainsFunc(r.counts, counted) || n.sharesHost(c.server) && n.hostOf(c.server) != "" {
		return allow, nil, writeLimit
	}
	if at := n.notImported(c); at > 0 {
		return allow, nil, fmt.Sprintf("%s: that on line %d, which nginx has there, is not imported", writeLimit, at)
	}
	beside, ok := n.limitBeside(&allow, r, c, region, counted)
	if !ok {
		return allow, nil, writeLimit
	}
	return allow, beside, ""
}
