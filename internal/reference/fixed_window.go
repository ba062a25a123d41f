package reference

import "math/big"

// fixedWindow counts the units between two boundaries.
type fixedWindow struct {
	terms terms
	taken windowCounts
}

func (b *fixedWindow) follows() terms { return b.terms }

func (b *fixedWindow) content(at int64) *big.Rat {
	left := b.terms.capacity
	for _, c := range b.taken.counts {
		if at < c.end {
			left -= c.units
		}
	}
	return whole(left)
}

// adopt keeps the counted units.
//
// Not documented: units that were taken of a window go on counting whole, however far
// COUNT is lowered. Only the debt of a token bucket is bounded by the new capacity.
func (b *fixedWindow) adopt(now int64, t terms) {
	if !t.period.same(b.terms.period) {
		b.taken.changePeriod(now)
	}
	b.terms = t
}

func (b *fixedWindow) take(now, units int64) mark {
	return b.taken.add(now, units, b.terms.period)
}

func (b *fixedWindow) owe(now, units int64) {
	b.take(now, min(units, room(b, now)))
}

// giveBack returns units while their window runs, and unless its period was changed.
func (b *fixedWindow) giveBack(now, units int64, from mark) {
	if start, _ := b.terms.period.window(now); from.era == b.taken.era && from.start == start {
		b.taken.remove(units, start)
	}
}

func (b *fixedWindow) refund(now, units int64) {
	start, _ := b.terms.period.window(now)
	b.taken.remove(units, start)
}

func (b *fixedWindow) clone() bucket {
	return &fixedWindow{b.terms, b.taken.clone()}
}
