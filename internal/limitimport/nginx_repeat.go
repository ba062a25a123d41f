package limitimport

import (
	"cmp"
	"fmt"
	"slices"
)

// dropRepeated drops the limit_req of a context that has those of the context around it, which it inherits without its own.
func (n *nginx) dropRepeated() {
	byContext := n.byContext()
	for _, c := range n.contexts { // outer ones first
		from := c.outer.limiting()
		if c.limits > 0 && c.limits == len(byContext[c]) && from != nil && haveSame(byContext[c], byContext[from]) && !n.isCrossed(c, from, byContext) {
			c.limits = 0
		}
	}
	n.requests = slices.DeleteFunc(n.requests, func(r limitRequest) bool { return r.context.limits == 0 })
}

// maxCrossings bounds how many pairs of contexts isCrossed compares.
const maxCrossings = 300_000

// isCrossed reports whether another context, neither around c nor inside of it, may have requests of c here, and a limit_req
// with the key of one of an outer context: its limit would take the place of the outer one there. Where there are too many
// contexts to compare one may.
func (n *nginx) isCrossed(c, outer *nginxContext, byContext map[*nginxContext][]*limitRequest) bool {
	there := imported{when: n.conditions(c)}
	return slices.ContainsFunc(n.contexts, func(o *nginxContext) bool {
		if n.crossings++; n.crossings > maxCrossings {
			return true
		}
		if o == c || o.limits == 0 || o.location.isRegexp() || o.isAnswered() && !n.inUse[o] || c.isInside(o) || o.isInside(c) {
			return false
		}
		other := n.conditions(o)
		inner := imported{when: other}
		if there.covers(other) && !inner.covers(there.when) {
			return false // nginx matches it first
		}
		return there.meets(other) && n.haveOneKey(byContext[outer], byContext[o])
	})
}

// haveSame reports whether two contexts have the same limit_req.
func haveSame(a, b []*limitRequest) bool {
	return !slices.ContainsFunc(a, func(r *limitRequest) bool { return !hasSame(b, r) }) && !slices.ContainsFunc(b, func(r *limitRequest) bool { return !hasSame(a, r) })
}

// hasSame reports whether a limit_req is one of others too.
func hasSame(others []*limitRequest, r *limitRequest) bool {
	return slices.ContainsFunc(others, func(o *limitRequest) bool { return r.repeats(o) && o.context.isDry() == r.context.isDry() })
}

// repeats reports whether a limit_req has the zone and the burst of another one.
func (r *limitRequest) repeats(o *limitRequest) bool {
	return r.mistake == "" && o.mistake == "" && o.zone == r.zone && o.burst == r.burst
}

// groupLimits gives the limits of a context that count by the same groups of their own: all of them count a request. Those that
// an outer context has too get the groups that they have there.
func (n *nginx) groupLimits() {
	byContext := n.byContext()
	for _, c := range n.contexts { // outer ones first
		places, own := map[string]bool{}, []*limitRequest{}
		for _, r := range byContext[c] {
			if outer := r.repeatedOf(byContext[c.outer.limiting()]); outer != nil {
				r.limit.group = outer.limit.group
				places[r.limit.place()] = true
			} else {
				own = append(own, r)
			}
		}
		slices.SortStableFunc(own, importedFirst)
		for _, r := range own {
			group := cmp.Or(r.limit.group, "nginx")
			for number := 2; places[r.limit.place()]; number++ {
				r.limit.group = fmt.Sprintf("%s-%d", group, number)
			}
			places[r.limit.place()] = true
		}
	}
}

// mergeRepeated makes the limit of a limit_req that repeats one of the context around it the same limit: to nginx both count
// the units of one zone, and the outer limit has the requests of the inner context too.
func (n *nginx) mergeRepeated() {
	byContext := n.byContext()
	for _, c := range n.contexts { // outer ones first
		for _, r := range byContext[c] {
			r.counts = c.counted
			if outer := r.repeatedOf(byContext[c.outer.limiting()]); outer != nil && r.imported && outer.imported && outer.limit.covers(r.limit.when) && !n.isCrossed(c, outer.context, byContext) {
				r.limit, r.repeated = outer.limit, cmp.Or(outer.repeated, outer)
				r.repeated.counts = slices.Concat(r.repeated.counts, c.counted)
			}
		}
	}
	for i := range n.requests {
		if r := &n.requests[i]; r.repeated != nil {
			r.counts = r.repeated.counts
		}
	}
}

// repeatedOf returns the limit_req of others, those of an outer context, that a limit_req repeats, or nil.
func (r *limitRequest) repeatedOf(others []*limitRequest) *limitRequest {
	i := slices.IndexFunc(others, func(o *limitRequest) bool {
		return r.repeats(o) && len(o.limit.by) > 0 && o.context.enforced == r.context.enforced
	})
	if i < 0 {
		return nil
	}
	return others[i]
}

// importedFirst orders imported limit_req before others.
func importedFirst(a, b *limitRequest) int {
	switch {
	case a.imported == b.imported:
		return 0
	case a.imported:
		return -1
	}
	return 1
}
