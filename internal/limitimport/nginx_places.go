package limitimport

import (
	"maps"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxOuterCompared bounds how many pairs of limit_req remarkOuter compares.
const maxOuterCompared = 100_000

// remarkOuter remarks on limit_req that count by other keys than one of an outer context: nginx leaves
// the outer one out where there is an inner one, and a limit here takes the place only of one that
// counts by the same.
func (n *nginx) remarkOuter() {
	compared := 0
	for i := range n.requests {
		inner := &n.requests[i]
		for j := range n.requests {
			if compared++; compared > maxOuterCompared {
				return
			}
			outer := &n.requests[j]
			a, b := n.zones[inner.zone], n.zones[outer.zone]
			if a == nil || b == nil || a.key == b.key || inner.mistake != "" || outer.mistake != "" || !outer.isOuterOf(inner) {
				continue
			}
			n.remark(inner.line, "where this limit_req stands, nginx leaves out that of zone %s on line %d; here both count", limit.Shorten(outer.zone), outer.line)
		}
	}
}

// isOuterOf reports whether a limit_req stands in a context around that of another one.
func (r *limitRequest) isOuterOf(inner *limitRequest) bool {
	if r.server != nil && r.server != inner.server || len(r.paths) > len(inner.paths) {
		return false
	}
	if len(r.paths) == len(inner.paths) && r.server == inner.server {
		return false // the same context, or one beside it
	}
	return slices.Equal(r.paths, inner.paths[:len(r.paths)])
}

// remarkBeside remarks on the locations that nginx matches before that of a limit_req, and whose requests
// have its limit here.
func (n *nginx) remarkBeside(r *limitRequest, at location) {
	for _, other := range n.places {
		matches := strings.HasPrefix(other.modifier, "~") || strings.HasPrefix(other.path, at.path)
		if matches && other.server == r.server && other.location != at && !n.replaces(r, other) {
			n.remark(other.line, "nginx matches location %s before %s, whose limit by zone %s its requests have here too: write a limit for it", limit.Shorten(other.path), limit.Shorten(at.path), limit.Shorten(r.zone))
		}
	}
}

// replaces reports whether a limit_req of a location becomes a limit that takes the place of that of r,
// which it does where there is no condition.
func (n *nginx) replaces(r *limitRequest, at place) bool {
	z := n.zones[r.zone]
	return r.paths[len(r.paths)-1].path == "/" && !strings.HasPrefix(at.modifier, "~") && z != nil && n.inner[innerLimit{at.location, r.rank, z.key}]
}

// remarkShared remarks on limits that were imported of several limit_req with one zone.
func (n *nginx) remarkShared() {
	for _, name := range slices.Sorted(maps.Keys(n.uses)) {
		lines := n.uses[name]
		for _, line := range lines {
			if len(lines) > 1 {
				n.remark(line, "%d of the limit_req that are imported share the units of zone %s in nginx; here each has its own, so that they admit more together", len(lines), limit.Shorten(name))
			}
		}
	}
}

// remarkDry remarks on limit_req_dry_run in contexts that take their limit_req from an outer one, where
// it is not on: the limit is one for all of them.
func (n *nginx) remarkDry() {
	for _, c := range n.contexts {
		if c.dryLine == 0 || !c.dry || c.limits > 0 {
			continue
		}
		from := c.outer
		for from != nil && from.limits == 0 {
			from = from.outer
		}
		if from != nil && from.imported > 0 && !from.isDry() {
			n.remark(c.dryLine, "limit_req_dry_run is on for some requests of limit_req on line %d: the limit is enforced here, for all of them", from.imported)
		}
	}
}
