package limitimport

import (
	"slices"
	"strings"
)

// maxInherited bounds the limit_req that inheritToInner writes.
const maxInherited = 1000

// inheritToInner moves the limit_req of a context into the contexts inside of it that inherit them, where another one
// inside has the same requests by its conditions, and limit_req of its own with the same key: those of a server beside a location /, whose
// limit would take the place of theirs everywhere. It is the same configuration to nginx.
func (n *nginx) inheritToInner() {
	counting := n.counting()
	byContext, moved := n.byContext(), map[*nginxContext][]*nginxContext{}
	for _, inner := range n.contexts {
		if inner.limits == 0 || inner.location.isRegexp() || !counting[inner] {
			continue
		}
		for outer := inner.outer; outer != nil; outer = outer.outer {
			if outer.limits > 0 && outer.divided && slices.Equal(n.conditions(outer), n.conditions(inner)) && n.haveOneKey(byContext[outer], byContext[inner]) {
				moved[outer] = nil
			}
		}
	}
	written := 0
	for _, c := range n.contexts {
		from := c.limiting()
		if _, moves := moved[from]; !moves || c == from || c.divided || !c.hasRequests() || strings.HasPrefix(c.location.path, "@") {
			continue // a request of a named location was counted before
		}
		moved[from] = append(moved[from], c)
		c.limits = from.limits
		written += from.limits
	}
	if written <= maxInherited {
		n.moveRequests(moved)
		return
	}
	for _, into := range moved {
		for _, c := range into {
			c.limits = 0
		}
	}
}

// haveOneKey reports whether a limit_req of a context counts by the same as one of an outer context, whose place it would take.
// A limit_req that both have takes no place.
func (n *nginx) haveOneKey(outer, inner []*limitRequest) bool {
	keys := map[string]bool{}
	for _, r := range outer {
		if z := n.zones[r.zone]; z != nil && !hasSame(inner, r) {
			keys[z.key] = true
		}
	}
	return slices.ContainsFunc(inner, func(r *limitRequest) bool {
		z := n.zones[r.zone]
		return z != nil && keys[z.key] && !hasSame(outer, r)
	})
}

// moveRequests moves the limit_req of contexts into others.
func (n *nginx) moveRequests(moved map[*nginxContext][]*nginxContext) {
	var requests []limitRequest
	for i, r := range n.requests {
		into, moves := moved[r.context]
		if !moves || len(into) == 0 {
			requests = append(requests, r)
			continue
		}
		r.context.limits = 0
		for _, c := range into {
			own := r
			own.context, own.server, own.inherited = c, c.server, i+1
			requests = append(requests, own)
		}
	}
	n.requests = requests
}

// hasRequests reports whether a context is a block that requests have.
func (c *nginxContext) hasRequests() bool {
	return slices.Contains([]string{"", "http", "server", "location"}, c.name)
}

// conditions returns the conditions of the limit of a limit_req in a context.
func (n *nginx) conditions(c *nginxContext) []condition { return withoutRoot(n.region(c)) }

// withoutRoot returns conditions without the one on the path that each path meets.
func withoutRoot(region []condition) []condition {
	return slices.DeleteFunc(slices.Clone(region), func(on condition) bool { return on == condition{"path", "/*"} })
}

// isInheritedWith reports whether two limit_req are one that their contexts inherit, and r denies no request that o admits,
// as it would if o were in dry run alone.
func (r *limitRequest) isInheritedWith(o *limitRequest) bool {
	return r.inherited > 0 && r.inherited == o.inherited && (r.context.isDry() || !o.context.isDry())
}
