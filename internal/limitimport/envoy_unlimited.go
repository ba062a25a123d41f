package limitimport

import (
	"cmp"
	"fmt"
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
		if other := &e.rules[i]; other.action == "" && r.isBelow(other) {
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
	counts := fmt.Sprintf("%s has no limit there, and here its requests count by %s", limit.Shorten(r.rule.Path), strings.Join(ids, ", "))
	for i := range e.rules {
		if other := &e.rules[i]; other != first && other.hasPlaceOf(&allow) && other.meets(&envoyRule{imported: allow}) {
			e.remarkAt(r.at().File, r.at().Line, "%s: a limit with action: allow lifts %s if it counts by the same, and is less specific than %s", counts, ids[0], limit.Shorten(other.id))
			return
		}
	}
	e.advised = append(e.advised, allow.when...)
	if at, known := e.nameAdvised(&allow, r.at().Line); known {
		e.remarkAt(r.at().File, r.at().Line, "%s: line %d says what to write", counts, at)
		return
	}
	place := "shared"
	if slices.Contains(first.by, "tenant") {
		place = "its plan"
	}
	e.remarkAt(r.at().File, r.at().Line, "%s: to lift %s, write %s in %s", counts, ids[0], allow.line(), place)
}

// isBelow reports whether the descriptor of a rule is below that of another one.
func (r *envoyRule) isBelow(other *envoyRule) bool {
	return len(r.levels) > len(other.levels) && slices.Equal(r.levels[:len(other.levels)], other.levels)
}
