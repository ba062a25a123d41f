package limit

// freed adds limits that do not count some requests any more, which another limit decided at another level: that is removed, narrower or no
// override now, and has no line of its own, and one decides them in its place that replaces the former. Before, after and about are those of places.
func (c *loosened) freed(what string, before, after []*Limit, about func(taker, taking, was, is *Limit) bool) {
	was, of := byID(before), byID(after)
	for _, l := range before {
		now := of[l.ID]
		if !l.isEnforced() || l.everyLevel || now != nil && c.same(l, now) || loosening(l, now) != "" {
			continue
		}
		for _, taker := range after {
			if len(taker.Replaces) == 0 || taker.Action != ActionLimit || !taker.isEnforced() {
				continue
			}
			if c.compared++; c.compared > maxPlaces {
				c.cut = true
				return
			}
			if !takesPlace(l, taker) || l.keepsPlace(now) && takesPlace(now, taker) {
				continue
			}
			for _, id := range taker.Replaces {
				w, is := was[id], of[id]
				if id == l.ID || !w.isEnforced() || !is.isEnforced() || w.Action == ActionAllow || !canMeet(l, w) || l.standsFor(w) || !taker.standsFor(is) {
					continue
				}
				if (about(taker, now, w, is) || about(l, now, w, is)) && (taker.admitsMoreThan(w) || c.replaced[taker.ID]) {
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
