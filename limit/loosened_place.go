package limit

import (
	"fmt"
	"slices"
)

// loosenedPlaces describes limits that do not decide requests any more, since one of takers does so in their place, which admits more.
// Before and after are all limits that may count one request; takers are some of those after the change. Those of a tenant are
// compared as far as one of them is an override: the rest is compared with the plan.
func loosenedPlaces(what string, before, after, takers []*Limit, ofTenant bool) (lines []string) {
	compared := 0
	for _, taker := range takers {
		if taker.Mode != ModeEnforce {
			continue
		}
		taking := withID(before, taker.ID)
		for _, was := range before {
			if compared++; compared > mostCompared {
				return append(lines, fmt.Sprintf("%smore limits may take the place of others than are compared", what))
			}
			is := withID(after, was.ID)
			if is == nil || was.ID == taker.ID || was.Mode != ModeEnforce || is.Mode != ModeEnforce || ofTenant && !overrides(taker, taking, was, is) {
				continue
			}
			if taker.standsFor(is) && taker.admitsMoreThan(was) && !(taking.isEnforced() && taking.standsFor(was)) && !(taker.isNewAllow(taking) && was.Action == ActionLimit) {
				lines = append(lines, fmt.Sprintf("%s%s (%s) takes the place of %s (%s)", what, taker.ID, taker.Describe(), is.ID, is.Describe()))
			}
		}
	}
	return lines
}

// overrides reports whether any of limits, which may be nil, is an override.
func overrides(limits ...*Limit) bool {
	return slices.ContainsFunc(limits, func(l *Limit) bool { return l != nil && l.layer == layerOverride })
}

// standsFor reports whether l decides requests in place of another limit.
func (l *Limit) standsFor(other *Limit) bool {
	return takesPlace(l, other) || slices.Contains(l.Replaces, other.ID) && canMeet(l, other)
}

// isEnforced reports whether there is a limit, and it is enforced.
func (l *Limit) isEnforced() bool { return l != nil && l.Mode == ModeEnforce }

// isNewAllow reports whether a limit allows requests that it did not allow as it was: it has a line that says so.
func (l *Limit) isNewAllow(was *Limit) bool {
	return l.Action == ActionAllow && !(was.isEnforced() && was.Action == ActionAllow)
}

// admitsMoreThan reports whether l may admit more than another limit whose place it takes.
func (l *Limit) admitsMoreThan(other *Limit) bool {
	switch {
	case other.Action == ActionDeny:
		return l.Action != ActionDeny
	case other.Action == ActionAllow || l.Action == ActionDeny:
		return false
	case l.Action == ActionAllow:
		return true
	}
	return !slices.Equal(l.Level(), other.Level()) || admitsMore(l, other)
}
