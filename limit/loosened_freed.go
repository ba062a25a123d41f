package limit

import "slices"

// maxFreed bounds the limits that are compared for those that a removed one leaves to others: few files have both.
const maxFreed = 100_000

// freed adds limits that do not count some requests any more, which another limit decided at another level: that is removed, narrower or no
// override now, and has no line of its own, and one decides them in its place that replaces the former. Each pair of the latter two has one
// line. Before, after and about are those of places.
func (c *loosened) freed(what string, before, after []*Limit, about func(taker, taking, was, is *Limit) bool) {
	was, of := byID(before), byID(after)
	var takers []*Limit
	for _, l := range after {
		if len(l.Replaces) > 0 && l.Action == ActionLimit && l.isEnforced() {
			takers = append(takers, l)
		}
	}
	if len(takers) == 0 {
		return
	}
	has := map[[2]string]bool{}
	for _, l := range before {
		now := of[l.ID]
		if !l.isEnforced() || l.everyLevel || now != nil && c.same(l, now) || loosening(l, now) != "" {
			continue
		}
		if c.comparedFreed += len(after) + len(takers); c.comparedFreed > maxFreed {
			c.cutFreed = true
			return
		}
		keepers := slices.DeleteFunc(slices.Clone(after), func(is *Limit) bool { return !l.keepsPlace(is) })
		for _, taker := range takers {
			if !takesPlace(l, taker) || slices.ContainsFunc(keepers, func(k *Limit) bool { return takesPlace(k, taker) }) {
				continue
			}
			c.comparedFreed += len(taker.Replaces)
			for _, id := range taker.Replaces {
				pair, w, is := [2]string{taker.ID, id}, was[id], of[id]
				if id == l.ID || has[pair] || !w.isEnforced() || !is.isEnforced() || w.Action == ActionAllow || !canMeet(l, w) || l.standsFor(w) || !taker.standsFor(is) {
					continue
				}
				if (about(taker, now, w, is) || about(l, now, w, is)) && (taker.admitsMoreThan(w) || c.replaced[taker.ID]) {
					has[pair] = true
					c.add(takesPlaceLine+" for requests that %s decided", what, taker.ID, taker.Describe(), id, is.Describe(), l.ID)
				}
			}
		}
	}
}

// keepsPlace reports whether a limit, which may be nil, decides all requests that it decided as l.
func (l *Limit) keepsPlace(is *Limit) bool {
	return is.isEnforced() && is.enforcedIn() >= l.enforcedIn() && is.groupKey() == l.groupKey() && l.within(is) && hasDeclared(is.when, l.when)
}
