package reference

import "math/big"

// slidingWindow counts the current window, and weighs the previous one by the part of it
// that lies within the last period.
type slidingWindow struct {
	terms terms
	taken windowCounts
}

func (b *slidingWindow) follows() terms { return b.terms }

func (b *slidingWindow) content(at int64) *big.Rat {
	left := whole(b.terms.capacity)
	for _, c := range b.taken.counts {
		left.Sub(left, b.weight(c, at))
	}
	return left
}

// weight returns the weight of the units of a window at an instant: all while it runs,
// and less and less for one more period.
//
// Not documented: after a change of the period the units of the window that ran weigh
// nothing once it is over, and those of the window before it weigh nothing at once.
func (b *slidingWindow) weight(c windowCount, at int64) *big.Rat {
	length := b.terms.period.length
	over := at - c.end
	switch {
	case over < 0:
		return whole(c.units)
	case over >= length || c.era != b.taken.era:
		return new(big.Rat)
	default:
		part := big.NewRat(length-over, length)
		return part.Mul(part, whole(c.units))
	}
}

// adopt keeps the counted units, as a fixed window does.
func (b *slidingWindow) adopt(now int64, t terms) {
	if !t.period.same(b.terms.period) {
		b.taken.changePeriod(now)
	}
	b.terms = t
}

func (b *slidingWindow) take(now, units int64) mark {
	return b.taken.add(now, units, b.terms.period)
}

func (b *slidingWindow) owe(now, units int64) {
	b.take(now, min(units, room(b, now)))
}

// giveBack returns units while they have weight, and unless the period was changed. A
// window without weight is left unchanged: it makes no difference.
func (b *slidingWindow) giveBack(_, units int64, from mark) {
	if from.era == b.taken.era {
		b.taken.remove(units, from.start)
	}
}

// refund returns units to the current window, and leaves the previous one.
func (b *slidingWindow) refund(now, units int64) {
	start, _ := b.terms.period.window(now)
	b.taken.remove(units, start)
}

func (b *slidingWindow) clone() bucket {
	return &slidingWindow{b.terms, b.taken.clone()}
}
