package limit

import "slices"

// maxFreed bounds the limits that are compared for those that a removed one leaves to others: few files have both.
const maxFreed = 100_000

// freed adds limits that no longer count some requests. Another limit, the holder, decided these before, without an effect on the limits added.
// It is removed, narrower or no override now, and a taker decides in its place, which replaces them. Each pair of a taker and a limit has one
// line. Before, after and about are those of places.
func (c *loosened) freed(what string, before, after []*Limit, about func(taker, taking, was, is *Limit) bool) {
	var takers []*Limit
	for _, l := range after {
		if len(l.Replaces) > 0 && l.Action == ActionLimit && l.isEnforced() {
			takers = append(takers, l)
		}
	}
	if len(takers) == 0 {
		return
	}
	was, of, added := byID(before), byID(after), map[[2]string]bool{}
	for _, holder := range before {
		now := of[holder.ID]
		if !holder.isEnforced() || holder.everyLevel || now != nil && c.same(holder, now) || loosening(holder, now) != "" {
			continue
		}
		if c.comparedFreed += len(after) + len(takers); c.comparedFreed > maxFreed {
			c.cutFreed = true
			return
		}
		for _, taker := range holder.leavesTo(takers, after) {
			c.comparedFreed += len(taker.Replaces)
			for _, id := range taker.Replaces {
				w, is, pair := was[id], of[id], [2]string{taker.ID, id}
				if id == holder.ID || added[pair] || !about(taker, now, w, is) && !about(holder, now, w, is) || !c.isFreed(holder, taker, w, is) {
					continue
				}
				added[pair] = true
				c.add(takesPlaceLine+" for requests that %s decided", what, taker.ID, taker.Describe(), id, is.Describe(), holder.ID)
			}
		}
	}
}

// leavesTo returns those of takers that decide requests which l decided, as none of after keeps all of its requests from them.
func (l *Limit) leavesTo(takers, after []*Limit) []*Limit {
	keepers := slices.DeleteFunc(slices.Clone(after), func(is *Limit) bool { return !l.keepsPlace(is) })
	return slices.DeleteFunc(slices.Clone(takers), func(taker *Limit) bool {
		return !takesPlace(l, taker) || slices.ContainsFunc(keepers, func(keeper *Limit) bool { return takesPlace(keeper, taker) })
	})
}

// isFreed reports whether a limit, was and is, either of which may be nil, counted requests of holder, and taker admits more of them in its place.
func (c *loosened) isFreed(holder, taker, was, is *Limit) bool {
	if !was.isEnforced() || !is.isEnforced() || was.Action == ActionAllow || !canMeet(holder, was) || holder.standsFor(was) || !taker.standsFor(is) {
		return false
	}
	return taker.admitsMoreThan(was) || c.replaced[taker.ID]
}

// keepsPlace reports whether is, an enforced limit, decides all requests that l decided.
func (l *Limit) keepsPlace(is *Limit) bool {
	return is.isEnforced() && is.enforcedIn() >= l.enforcedIn() && is.groupKey() == l.groupKey() && l.within(is) && hasDeclared(is.when, l.when)
}
