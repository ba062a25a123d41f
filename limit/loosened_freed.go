package limit

import "slices"

// maxFreed bounds the pairs of limits that are compared for requests which a limit leaves to another one: a file has few limits that
// do, unless it is made to have many.
const maxFreed = 300_000

// freed adds limits that no longer count some requests. Another limit, the holder, decided these before, without an effect on the limits added.
// Now it does not, since it is removed, narrower or no override, or the taker is more specific than it was, and the taker decides in its place,
// which replaces them. A holder with a line of its own has none here, and each pair of a taker and a limit has one. Before, after and
// about are those of places.
func (c *loosened) freed(what string, before, after []*Limit, about func(taker, taking, was, is *Limit) bool) {
	was, of, added := byID(before), byID(after), map[[2]string]bool{}
	takers, risen := takersOf(after, was)
	for _, holder := range before {
		now, candidates := of[holder.ID], takers
		if holder.keepsPlace(now) && compareRank(now, holder) <= 0 {
			candidates = risen
		}
		if len(candidates) == 0 || !holder.isEnforced() || holder.everyLevel || loosening(holder, now) != "" {
			continue
		}
		if c.comparedFreed += len(candidates); c.comparedFreed > maxFreed {
			c.cutFreed = true
			return
		}
		left := c.leftBy(holder, now, candidates, was, after)
		var beside []*Limit
		if len(left) > 0 {
			beside = holder.countedBeside(before)
		}
		for _, taker := range left {
			taking := was[taker.ID]
			for _, id := range taker.Replaces {
				w, is, pair := was[id], of[id], [2]string{taker.ID, id}
				if id == holder.ID || added[pair] || !about(taker, taking, w, is) && !about(holder, now, w, is) || !c.isFreed(holder, taker, taking, w, is) {
					continue
				}
				c.comparedFreed += len(beside)
				if slices.ContainsFunc(beside, func(l *Limit) bool { return l.standsFor(w) }) {
					continue
				}
				added[pair] = true
				c.add(takesPlaceLine+" for requests that %s decided", what, taker.ID, taker.Describe(), id, is.Describe(), holder.ID)
			}
		}
	}
}

// takersOf returns the limits of after that replace others, and did something else or the same before, and those of them that
// are more specific than they were.
func takersOf(after []*Limit, was map[string]*Limit) (takers, risen []*Limit) {
	for _, l := range after {
		taking := was[l.ID]
		if len(l.Replaces) == 0 || l.Action != ActionLimit || !l.isEnforced() || !taking.isEnforced() { // a new one has other lines
			continue
		}
		takers = append(takers, l)
		if compareRank(l, taking) < 0 {
			risen = append(risen, l)
		}
	}
	return takers, risen
}

// leftBy returns those of takers that decide requests which the holder decided in their place: neither what the holder is now, which may be
// nil, nor another one of after that decides all its requests, keeps these from them.
func (c *loosened) leftBy(holder, now *Limit, takers []*Limit, was map[string]*Limit, after []*Limit) []*Limit {
	left := slices.DeleteFunc(slices.Clone(takers), func(taker *Limit) bool {
		return !takesPlace(holder, was[taker.ID]) || !canMeet(holder, taker)
	})
	if len(left) == 0 {
		return nil
	}
	c.comparedFreed += 2 * len(after) // countedBeside has as many
	keepers := slices.DeleteFunc(slices.Clone(after), func(is *Limit) bool { return is != now && !holder.keepsPlace(is) || !holder.mayKeepPlace(is) })
	return slices.DeleteFunc(left, func(taker *Limit) bool {
		c.comparedFreed += len(keepers) + len(taker.Replaces)
		return slices.ContainsFunc(keepers, func(keeper *Limit) bool { return takesPlace(keeper, taker) && keeper.matchesBoth(holder, taker) })
	})
}

// isFreed reports whether a limit, was and is, either of which may be nil, counted requests of holder, and taker admits more of them in
// its place, as it did of others: place adds the limits that it did not replace.
func (c *loosened) isFreed(holder, taker, taking, was, is *Limit) bool {
	if !was.isEnforced() || !is.isEnforced() || was.Action == ActionAllow || !canMeet(holder, was) || holder.standsFor(was) || !taker.standsFor(is) {
		return false
	}
	return taker.decidedBefore(taking, was) && (taker.admitsMoreThan(was) || c.replaced[taker.ID])
}

// countedBeside returns those of limits that decided all requests of holder beside it.
func (l *Limit) countedBeside(limits []*Limit) []*Limit {
	return slices.DeleteFunc(slices.Clone(limits), func(other *Limit) bool {
		return other == l || other.enforcedIn() < percentParts || takesPlace(l, other) || !l.within(other) || !hasDeclared(other.when, l.when)
	})
}

// keepsPlace reports whether is, which may be nil, decides all requests that l decided.
func (l *Limit) keepsPlace(is *Limit) bool { return l.mayKeepPlace(is) && l.within(is) }

// mayKeepPlace reports whether is, which may be nil, decides requests that l decided, but for its conditions.
func (l *Limit) mayKeepPlace(is *Limit) bool {
	return is.isEnforced() && is.enforcedIn() >= l.enforcedIn() && is.groupKey() == l.groupKey() && hasDeclared(is.when, l.when)
}
