package edge

import (
	"net/netip"
	"slices"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// ceiling is limits that together bound the requests of a scope.
type ceiling struct {
	sum  []*limit.Limit // one bucket of each counts
	last *limit.Limit   // the one that applies where no other does
	// open is the limit because of which there is no bound, or nil if some requests meet none.
	open *limit.Limit
}

// ceilingOf returns the limits of a group that bound the requests of a scope. Ok is false if there is
// no bound.
func ceilingOf(group []*limit.Limit, s scope) (c ceiling, ok bool) {
	for _, l := range group {
		if l.Mode != limit.ModeEnforce || s.except[l] {
			continue
		}
		met := s.part(l)
		switch {
		case met == none:
			continue
		case l.Action == limit.ActionAllow, l.Action == limit.ActionLimit && !oneBucket(l, s):
			return ceiling{open: l}, false
		case l.Action == limit.ActionLimit:
			c.sum = append(c.sum, l)
		}
		if met == all {
			c.last = l
			return c, len(c.sum) > 0
		}
	}
	return ceiling{}, false
}

// oneBucket reports whether all requests of a client in a scope that meet a limit share a bucket.
func oneBucket(l *limit.Limit, s scope) bool {
	for _, dim := range l.Level() {
		switch {
		case dim == "ip" && s.anyTenant, dim == "tenant" && !s.anyTenant:
		case dim == "op" && s.op != nil && s.op.exact:
		case dim == "op" && slices.ContainsFunc(l.Clauses(), func(c limit.Clause) bool { return c.Dim == "op" && c.Exact }):
		default:
			return false
		}
	}
	return l.Undivided.Algorithm != bucket.AlgorithmConcurrency
}

// blocks returns the blocks of addresses that limits of a group have conditions on, each once.
func blocks(group []*limit.Limit) (nets []netip.Prefix) {
	for _, l := range group {
		for _, c := range l.Clauses() {
			if c.Dim == "ip" && !slices.Contains(nets, c.Net) {
				nets = append(nets, c.Net)
			}
		}
	}
	return nets
}

// operations returns the operations on which limits of a group have conditions, each once.
func operations(group []*limit.Limit) (ops []operation) {
	for _, l := range group {
		if l.Mode != limit.ModeEnforce || l.Action != limit.ActionLimit {
			continue
		}
		for _, c := range l.Clauses() {
			if op, ok := operationOf(c); ok && !slices.Contains(ops, op) {
				ops = append(ops, op)
			}
		}
	}
	return ops
}

// exempt returns the limits of a group that allow all requests of an operation, whatever else is true
// of these.
func exempt(group []*limit.Limit) map[*limit.Limit]bool {
	out := map[*limit.Limit]bool{}
	for _, l := range group {
		clauses := l.Clauses()
		if l.Mode != limit.ModeEnforce || l.Action != limit.ActionAllow || len(clauses) != 1 {
			continue
		}
		if _, ok := operationOf(clauses[0]); ok {
			out[l] = true
		}
	}
	return out
}

// tenantCeilings returns the ceilings of a tenant's requests, one for each group of its limits that
// has one. All of them hold.
func tenantCeilings(limits []*limit.Limit) (out []ceiling) {
	for _, group := range limit.Compete(limits) {
		if !slices.Contains(group[len(group)-1].Level(), "tenant") {
			continue
		}
		c, ok := ceilingOf(group, scope{})
		if !ok {
			continue
		}
		if c, ok = withReplacing(c, limits); ok {
			out = append(out, c)
		}
	}
	return out
}

// withReplacing adds the limits that apply in place of those of a ceiling. Ok is false if these have no
// bound.
func withReplacing(c ceiling, limits []*limit.Limit) (ceiling, bool) {
	for _, l := range limits {
		replaces := l.Mode == limit.ModeEnforce && !slices.Contains(c.sum, l) &&
			slices.ContainsFunc(c.sum, func(of *limit.Limit) bool { return slices.Contains(l.Replaces, of.ID) })
		switch {
		case !replaces || l.Action == limit.ActionDeny:
		case !oneBucket(l, scope{}):
			return ceiling{open: l}, false
		default:
			c.sum = append(slices.Clone(c.sum), l)
		}
	}
	return c, true
}
