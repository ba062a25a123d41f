package limit

import "slices"

// maxPlaces bounds the pairs of limits of one group that are compared: a file has few limits at one level, unless it is made to have many.
const maxPlaces = 1_000_000

// takesPlaceLine is of a prefix, and the ids and descriptions of two limits.
const takesPlaceLine = "%s%s (%s) takes the place of %s (%s)"

// places adds limits that do not decide requests any more, since another one, taker, does so in their place, which admits more. Before and after
// are all limits that may count one request. About reports whether a pair of limits, each as it was and is, is looked for; of the taker
// there may be none before. Places reports whether limits differ.
func (c *loosened) places(what string, before, after []*Limit, about func(taker, taking, was, is *Limit) bool) (changed bool) {
	if c.cut {
		return true
	}
	was := byID(before)
	differing := map[string]bool{}
	groups, changes := map[string][]*Limit{}, map[string][]*Limit{} // all limits by their groups, and those that differ
	for _, is := range after {
		key := is.groupKey()
		groups[key] = append(groups[key], is)
		if w := was[is.ID]; w == nil || !c.same(w, is) {
			differing[is.ID] = true
			changes[key] = append(changes[key], is)
		}
	}
	if len(differing) == 0 && len(before) == len(after) {
		return false
	}
	c.replaced = replacedOf(after)
	of := byID(after)
	for _, taker := range after {
		if c.cut {
			break
		}
		rivals := changes[taker.groupKey()]
		if differing[taker.ID] {
			rivals = groups[taker.groupKey()]
		}
		for _, is := range rivals {
			c.place(what, taker, was[taker.ID], was[is.ID], is, about)
		}
		for _, id := range taker.Replaces {
			if is := of[id]; is != nil && is.groupKey() != taker.groupKey() && (differing[taker.ID] || differing[id]) {
				c.place(what, taker, was[taker.ID], was[id], is, about)
			}
		}
	}
	if !c.cutFreed {
		c.freed(what, before, after, about)
	}
	return true
}

// replacedOf returns the ids of limits that others of limits replace.
func replacedOf(limits []*Limit) map[string]bool {
	replaced := map[string]bool{}
	for _, l := range limits {
		if l.isEnforced() && l.Action != ActionAllow {
			for _, id := range l.Replaces {
				replaced[id] = true
			}
		}
	}
	return replaced
}

// place adds a limit, was and is, if taker, which was taking, decides requests in its place and did not before, and admits more, by
// itself or beside it.
func (c *loosened) place(what string, taker, taking, was, is *Limit, about func(taker, taking, was, is *Limit) bool) {
	if c.compared++; c.compared > maxPlaces {
		c.cut = true
		return
	}
	if taker.ID == is.ID || !taker.isEnforced() || !was.isEnforced() || !is.isEnforced() || !about(taker, taking, was, is) || !canMeet(taker, was) {
		return
	}
	more := taker.admitsMoreThan(was) || was.Action != ActionAllow && c.replaced[taker.ID] // by one that may admit more
	if taker.decidedBefore(taking, was) || !taker.standsFor(is) || taker.isNewAllow(taking) && was.Action == ActionLimit {
		return
	}
	switch {
	case more:
		c.add(takesPlaceLine, what, taker.ID, taker.Describe(), is.ID, is.Describe())
	case taker.countsApart(is):
		c.add("%s%s (%s) counts requests that %s (%s) counted: both together may admit more", what, taker.ID, taker.Describe(), is.ID, is.Describe())
	}
}

// decidedBefore reports whether a limit decided all its requests in place of another one before, when it was taking, which may be nil.
func (l *Limit) decidedBefore(taking, other *Limit) bool {
	return taking.isEnforced() && taking.enforcedIn() >= l.enforcedIn() && taking.standsFor(other) &&
		(l.within(taking) && hasDeclared(taking.when, l.when) || taking.Action == ActionAllow && l.Action == ActionAllow)
}

// same reports whether two limits decide the same.
func (c *loosened) same(a, b *Limit) bool {
	if a.layer != b.layer {
		return false
	}
	pair := [2]*Limit{a, b}
	same, known := c.known[pair]
	if !known {
		same = alike(a, b) && a.Mode == b.Mode && a.share == b.share && a.Params == b.Params && a.FixedCost == b.FixedCost && a.MaxCost == b.MaxCost && a.OnError == b.OnError
		if a.layer != layerOverride { // all tenants of a plan share it
			c.known[pair] = same
		}
	}
	return same
}

// overrides reports whether any of limits, which may be nil, is an override.
func overrides(limits ...*Limit) bool {
	return slices.ContainsFunc(limits, func(l *Limit) bool { return l != nil && l.layer == layerOverride })
}

// standsFor reports whether l decides requests in place of another limit. Of one that allows, replaces says no more than that.
func (l *Limit) standsFor(other *Limit) bool {
	if l.everyLevel && other.Action != ActionDeny && canMeet(l, other) {
		return true
	}
	return takesPlace(l, other) || l.Action != ActionAllow && slices.Contains(l.Replaces, other.ID) && canMeet(l, other) && !takesPlace(other, l)
}

// isEnforced reports whether there is a limit, and it is enforced.
func (l *Limit) isEnforced() bool { return l != nil && l.Mode == ModeEnforce }

// countsApart reports whether l counts requests in a bucket of its own that another limit counts together with others: its conditions
// are on more than by what it counts.
func (l *Limit) countsApart(other *Limit) bool {
	return l.Action == ActionLimit && other.Action == ActionLimit && slices.ContainsFunc(l.when, func(c condition) bool {
		return !slices.Contains(l.Level(), c.name) && !slices.ContainsFunc(other.when, func(o condition) bool { return o.name == c.name && o.text == c.text })
	})
}

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
	case l.Action == ActionAllow, l.OnError == OnErrorOpen && other.OnError != OnErrorOpen, l.Params.Algorithm != other.Params.Algorithm,
		other.Missing == MissingDeny && l.Missing != MissingDeny:
		return true
	}
	return !slices.Equal(l.Level(), other.Level()) || admitsMore(l, other)
}
