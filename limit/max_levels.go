package limit

import (
	"encoding/binary"
	"slices"
	"strings"
)

const (
	// mostCliqueSteps bounds the search for limits that one request can meet. Some twenty levels and groups of
	// which each excludes some take a few thousand steps.
	mostCliqueSteps = 20_000
	// mostSteps bounds all searches of a file: overrides can give each tenant another set of enforced limits.
	mostSteps = 2_000_000
	// mostClassPairs bounds the pairs of groups that are compared for the classes of a file.
	mostClassPairs = 20_000_000
)

// MaxEnforced returns the largest number of enforced limits that can apply to one
// request, over all plans and tenants.
func (s *Set) MaxEnforced() int {
	known, most := meetings{}, 0
	count := func(r *ruleset) {
		if r.mayEnforce() > most { // otherwise it cannot have more
			met, _ := known.of(r)
			most = max(most, len(met))
		}
	}
	count(s.defaultPlan)
	for _, r := range s.byPlan {
		count(r)
	}
	for _, r := range s.tenants.all() {
		count(r)
	}
	return most
}

// checkLevels reports that one request could meet more limits than max_levels.
func (c *compiler) checkLevels(r *ruleset, line int) {
	if r.mayEnforce() <= c.maxLevels {
		return // as for most files
	}
	met, upTo := c.meetings.of(r)
	if len(met) <= max(c.maxLevels, c.reportedLevels[r.plan]) { // a tenant has the mistake of its plan
		return
	}
	if c.reportedLevels == nil {
		c.reportedLevels = map[string]int{}
	}
	c.reportedLevels[r.plan] = len(met)
	if upTo {
		c.fail(line, "max_levels", "one request could meet up to %d enforced limits, more than max_levels (%d); these are too many to find the true number: merge some, or raise max_levels", len(met), c.maxLevels)
		return
	}
	var names []string
	for _, g := range met[:min(len(met), maxNamed)] {
		names = append(names, Quote(g[len(g)-1].ID))
	}
	more := ""
	if len(met) > maxNamed {
		more = " and others"
	}
	c.fail(line, "max_levels", "one request could meet %d enforced limits, more than max_levels (%d): %s%s; merge some, or raise max_levels", len(met), c.maxLevels, strings.Join(names, ", "), more)
}

// mayEnforce returns how many levels and groups have an enforced limit.
func (r *ruleset) mayEnforce() (n int) {
	for i := range r.groups {
		if slices.ContainsFunc(r.groups[i].candidates, (*Limit).counts) {
			n++
		}
	}
	return n
}

// counts reports whether a limit is enforced, and counts.
func (l *Limit) counts() bool { return l.Mode == ModeEnforce && l.Action == ActionLimit }

// enforcedGroups returns the enforced limits of each level and group that has some.
func (r *ruleset) enforcedGroups() (groups [][]*Limit) {
	for _, g := range r.groups {
		var enforced []*Limit
		for _, l := range g.candidates {
			if l.counts() {
				enforced = append(enforced, l)
			}
		}
		if enforced != nil {
			groups = append(groups, enforced)
		}
	}
	return groups
}

// meetings has the groups that one request can meet, by the plan and the ordinals of all enforced limits: tenants with overrides
// have rules of their own, of the same limits.
type meetings struct {
	best  map[string]meeting
	steps int // of all searches
	pairs int // that were compared for classes
}

// meeting is as many groups as one request can meet, or, with upTo, more: their number is a bound.
type meeting struct {
	groups []int
	upTo   bool
}

// of returns the enforced limits of as many levels and groups as one request can meet. It compares limits in
// pairs, so that there may be fewer in truth, and never more. UpTo reports that the search ended before it had the number.
func (m *meetings) of(r *ruleset) (met [][]*Limit, upTo bool) {
	groups := r.enforcedGroups()
	key := append([]byte(r.plan), 0)
	for _, g := range groups {
		key = binary.AppendUvarint(key, uint64(len(g)))
		for _, l := range g {
			key = binary.AppendUvarint(key, uint64(l.Ordinal))
		}
	}
	best, known := m.best[string(key)]
	if !known {
		s := meetingSearch{groups: groups, most: min(mostCliqueSteps, mostSteps-m.steps)}
		s.search(nil, 0)
		if m.steps += s.steps; s.steps > s.most {
			s.best, best.upTo = m.classes(groups), true
		}
		best.groups = s.best
		if m.best == nil {
			m.best = map[string]meeting{}
		}
		m.best[string(key)] = best
	}
	for _, i := range best.groups {
		met = append(met, groups[i])
	}
	return met, best.upTo
}

// classes returns one group of each class of groups of which no request meets two, as of limits of one tenant each.
// There are at least as many as one request can meet, and all groups after mostClassPairs.
func (m *meetings) classes(groups [][]*Limit) (firsts []int) {
	var classes [][]int
	for i := range groups {
		at := slices.IndexFunc(classes, func(class []int) bool {
			m.pairs += len(class)
			return m.pairs <= mostClassPairs && !slices.ContainsFunc(class, func(j int) bool { return groupsMeet(groups[j], groups[i]) })
		})
		if at < 0 {
			classes, firsts = append(classes, nil), append(firsts, i)
			at = len(classes) - 1
		}
		classes[at] = append(classes[at], i)
	}
	return firsts
}

// meetingSearch searches for the largest number of groups that one request can meet.
type meetingSearch struct {
	groups [][]*Limit
	best   []int
	most   int // steps
	steps  int
}

// search tries the groups from next on in addition to those that are taken.
func (s *meetingSearch) search(taken []int, next int) {
	if s.steps++; s.steps > s.most || len(taken)+len(s.groups)-next <= len(s.best) {
		return
	}
	if next == len(s.groups) {
		s.best = slices.Clone(taken)
		return
	}
	if !slices.ContainsFunc(taken, func(i int) bool { return !groupsMeet(s.groups[i], s.groups[next]) }) {
		s.search(append(taken, next), next+1)
	}
	s.search(taken, next+1)
}

// groupsMeet reports whether a limit of a and one of b can count one request: neither replaces the other.
func groupsMeet(a, b []*Limit) bool {
	return slices.ContainsFunc(a, func(x *Limit) bool {
		return slices.ContainsFunc(b, func(y *Limit) bool {
			return canMeet(x, y) && !slices.Contains(x.Replaces, y.ID) && !slices.Contains(y.Replaces, x.ID)
		})
	})
}
