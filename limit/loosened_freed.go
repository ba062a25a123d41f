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
		l := c.leave(holder, candidates, was, before, after)
		for _, taker := range l.takers {
			for _, id := range taker.Replaces {
				w, is, pair := was[id], of[id], [2]string{taker.ID, id}
				if id == holder.ID || added[pair] || !about(taker, was[taker.ID], w, is) && !about(holder, now, w, is) || !c.isFreed(holder, taker, was[taker.ID], w, is) || c.isKept(l, taker, w) {
					continue
				}
				if c.cutFreed {
					return
				}
				added[pair] = true
				c.add(takesPlaceLine+" for requests that %s decided", what, taker.ID, taker.Describe(), id, is.Describe(), holder.ID)
			}
		}
		if c.cutFreed {
			return
		}
	}
}

// takersOf returns the limits of after that replace others, and were enforced before, and those of them that are more specific than
// they were. Place has the lines of the others.
func takersOf(after []*Limit, was map[string]*Limit) (takers, risen []*Limit) {
	for _, l := range after {
		taking := was[l.ID]
		if len(l.Replaces) == 0 || l.Action != ActionLimit || !l.isEnforced() || !taking.isEnforced() {
			continue
		}
		takers = append(takers, l)
		if compareRank(l, taking) < 0 {
			risen = append(risen, l)
		}
	}
	return takers, risen
}

// leaving is a holder, with the limits that may decide its requests after it.
type leaving struct {
	holder  *Limit
	takers  []*Limit // those in whose place it decided
	keepers []*Limit // those of its level and group after the change, which may decide in the place of takers
	beside  []*Limit // those that decided its requests beside it
}

// leave returns what a holder may leave to candidates. It has no takers if that is nothing.
func (c *loosened) leave(holder *Limit, candidates []*Limit, was map[string]*Limit, before, after []*Limit) (l leaving) {
	if !c.mayCompare(len(candidates)) {
		return l
	}
	takers := slices.DeleteFunc(slices.Clone(candidates), func(taker *Limit) bool {
		return !takesPlace(holder, was[taker.ID]) || !canMeet(holder, taker)
	})
	if len(takers) == 0 || !c.mayCompare(len(after)+len(before)) {
		return l
	}
	return leaving{
		holder, takers,
		slices.DeleteFunc(slices.Clone(after), func(is *Limit) bool { return !holder.mayKeepPlace(is) }),
		slices.DeleteFunc(slices.Clone(before), func(other *Limit) bool { return !holder.isCountedBeside(other) }),
	}
}

// mayCompare reports whether n further pairs are within maxFreed, and notes if they are not.
func (c *loosened) mayCompare(n int) bool {
	c.comparedFreed += n
	c.cutFreed = c.cutFreed || c.comparedFreed > maxFreed
	return !c.cutFreed
}

// isFreed reports whether a limit, was and is, either of which may be nil, counted requests of holder, and taker admits more of them in
// its place, as it did of others: place adds the limits that it did not replace.
func (c *loosened) isFreed(holder, taker, taking, was, is *Limit) bool {
	if !was.isEnforced() || !is.isEnforced() || was.Action == ActionAllow || !canMeet(holder, was) || holder.standsFor(was) || !taker.standsFor(is) {
		return false
	}
	return taker.decidedBefore(taking, was) && (taker.admitsMoreThan(was) || c.replaced[taker.ID])
}

// isKept reports whether, of the requests of a holder, a taker and the limit that it replaces, another limit keeps all from the taker, or
// decided all in place of that limit before.
func (c *loosened) isKept(l leaving, taker, was *Limit) bool {
	if !c.mayCompare(len(l.keepers) + len(l.beside)) {
		return false
	}
	all := func(other *Limit) bool {
		return other.matchesAll(l.holder, taker, was) && other.hasDimensionsOf(l.holder, taker, was)
	}
	return slices.ContainsFunc(l.keepers, func(is *Limit) bool { return takesPlace(is, taker) && all(is) }) ||
		slices.ContainsFunc(l.beside, func(other *Limit) bool { return other.standsFor(was) && all(other) })
}

// hasDimensionsOf reports whether requests that all of limits decide have what l counts by, or l does not pass over those that lack it.
func (l *Limit) hasDimensionsOf(limits ...*Limit) bool {
	return l.Missing != MissingPass || !slices.ContainsFunc(l.Level(), func(name string) bool {
		return name != "tenant" && !slices.ContainsFunc(limits, func(of *Limit) bool { return of.demands(name) })
	})
}

// demands reports whether all requests that l decides have a dimension, or one of a chain of them.
func (l *Limit) demands(name string) bool {
	return l.Missing == MissingPass && slices.Contains(l.Level(), name) || slices.ContainsFunc(l.when, func(c condition) bool { return c.name == name })
}

// isCountedBeside reports whether another limit decided requests of l beside it that meet its conditions and have its dimensions.
func (l *Limit) isCountedBeside(other *Limit) bool {
	return other != l && other.enforcedIn() >= percentParts && !takesPlace(l, other) && hasDeclared(other.when, l.when)
}

// keepsPlace reports whether is, which may be nil, decides all requests that l decided.
func (l *Limit) keepsPlace(is *Limit) bool {
	return l.mayKeepPlace(is) && l.within(is) && is.hasDimensionsOf(l)
}

// mayKeepPlace reports whether is, which may be nil, decides all those requests that l decided which meet its conditions, unless it passes
// over those without its dimensions.
func (l *Limit) mayKeepPlace(is *Limit) bool {
	return is.isEnforced() && is.enforcedIn() >= l.enforcedIn() && is.groupKey() == l.groupKey() && hasDeclared(is.when, l.when)
}
