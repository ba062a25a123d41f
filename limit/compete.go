package limit

import (
	"net/netip"
	"slices"
)

// Clause is a condition of a limit.
type Clause struct {
	Dim   string       // tenant, op, ip or another dimension
	Text  string       // the value, or the beginning of all values, of dimensions other than ip
	Exact bool         // Text is a whole value
	Net   netip.Prefix // the addresses, of ip
	// Declared reports that only values that the limits file declares can occur.
	Declared bool
}

// Clauses returns the conditions of l, which all have to hold.
func (l *Limit) Clauses() []Clause {
	out := make([]Clause, len(l.when))
	for i := range l.when {
		w := &l.when[i]
		out[i] = Clause{Dim: w.name, Text: w.prefix, Exact: w.exact, Net: w.net, Declared: w.values != nil}
	}
	return out
}

// Compete returns the limits of each level and group, of which the first enforced one that applies to
// a request decides, in that order. One that allows at every level is the first of each group that does not only deny, in front of limits
// that deny in it: a reader may admit what these refuse, and refuses nothing more. Compete leaves out those of mode off.
func Compete(limits []*Limit) [][]*Limit {
	var groups [][]*Limit
	var allowing []*Limit
	index := map[string]int{}
	for _, l := range limits {
		if l.Mode == ModeOff {
			continue
		}
		if l.everyLevel {
			allowing = append(allowing, l)
			continue
		}
		key := l.groupKey()
		i, ok := index[key]
		if !ok {
			i = len(groups)
			index[key] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], l)
	}
	for i, g := range groups {
		slices.SortStableFunc(g, compareTurn)
		if slices.ContainsFunc(g, func(l *Limit) bool { return l.Action != ActionDeny }) {
			groups[i] = slices.Concat(allowing, g)
		}
	}
	return groups
}

// PlanNames returns the names of all plans, sorted.
func (s *Set) PlanNames() []string { return keys(s.byPlan) }

// DefaultPlan returns the name of the plan of tenants that are not listed, or "".
func (s *Set) DefaultPlan() string { return s.defaultPlan.plan }
