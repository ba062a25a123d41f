package limit

import (
	"fmt"
	"slices"
)

// loosenedPlaces describes limits that do not decide requests any more, since one of takers does so in their place, which admits more.
// Before and after are all limits that may count one request; takers are some of those after the change.
func loosenedPlaces(what string, before, after, takers []*Limit) (lines []string) {
	compared := 0
	for _, taker := range takers {
		if taker.Mode != ModeEnforce {
			continue
		}
		for _, was := range before {
			if compared++; compared > mostCompared {
				return append(lines, fmt.Sprintf("%smore limits may take the place of others than are compared", what))
			}
			is := withID(after, was.ID)
			if is == nil || was.ID == taker.ID || was.Mode != ModeEnforce || is.Mode != ModeEnforce || !taker.standsFor(is) || !taker.admitsMoreThan(was) {
				continue
			}
			if taking := withID(before, taker.ID); taking != nil && taking.Mode == ModeEnforce && taking.standsFor(was) {
				continue // a change of its own limit has a line
			}
			lines = append(lines, fmt.Sprintf("%s%s (%s) takes the place of %s (%s)", what, taker.ID, taker.Describe(), is.ID, is.Describe()))
		}
	}
	return lines
}

// standsFor reports whether l decides requests in place of another limit.
func (l *Limit) standsFor(other *Limit) bool {
	return takesPlace(l, other) || slices.Contains(l.Replaces, other.ID) && canMeet(l, other)
}

// admitsMoreThan reports whether l may admit more than another limit whose place it takes. It is false for one that allows in place of one that
// counts: it has a line already.
func (l *Limit) admitsMoreThan(other *Limit) bool {
	switch {
	case other.Action == ActionDeny:
		return l.Action != ActionDeny
	case other.Action == ActionAllow || l.Action != ActionLimit:
		return false
	}
	return !slices.Equal(l.Level(), other.Level()) || admitsMore(l, other)
}
