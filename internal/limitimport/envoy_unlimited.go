package limitimport

import (
	"cmp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// explainUnlimited remarks on a rule without a limit below others that have one, which count its requests here. Envoy may send
// such requests by the descriptor of the others, too, so that only its configuration says what is meant.
func (e *envoy) explainUnlimited(r *envoyRule) {
	var first *envoyRule
	var ids []string
	for i := range e.rules {
		if other := &e.rules[i]; other.action == "" && r.isBelow(other) && r.meets(other) {
			first, ids = cmp.Or(first, other), append(ids, limit.Shorten(other.id))
		}
	}
	if first == nil {
		return
	}
	allow := imported{id: r.id, action: "allow", by: first.by, group: first.group, when: slices.Clone(r.when)}
	for _, d := range r.levels {
		name := e.dimension(d)
		if !slices.Contains(first.by, name) && !slices.ContainsFunc(allow.when, func(c condition) bool { return c.dimension == name }) {
			allow.when = append(allow.when, condition{name, "*"})
		}
	}
	e.advised = append(e.advised, allow.when...)
	if at, known := e.nameAdvised(&allow, r.at().Line); known {
		e.remarkAt(r.at().File, r.at().Line, "%s has no limit there, and here its requests count by %s: line %d says what to write", limit.Shorten(r.rule.Path), strings.Join(ids, ", "), at)
		return
	}
	place := "shared"
	if slices.Contains(first.by, "tenant") {
		place = "its plan"
	}
	e.remarkAt(r.at().File, r.at().Line, "%s has no limit there, and here its requests count by %s: to lift %s, write %s in %s", limit.Shorten(r.rule.Path), strings.Join(ids, ", "), ids[0], allow.line(), place)
}

// isBelow reports whether the keys of a rule begin with all those of another one of its domain.
func (r *envoyRule) isBelow(other *envoyRule) bool {
	if r.domain != other.domain || len(r.levels) <= len(other.levels) {
		return false
	}
	for i, d := range other.levels {
		if d.Key != r.levels[i].Key {
			return false
		}
	}
	return true
}
