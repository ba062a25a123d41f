package reference

import (
	"math/big"
	"slices"
)

// slidingLog keeps every unit until it is a period old.
type slidingLog struct {
	terms terms
	// taken are the units of each instant, the latest last.
	taken []logged
}

type logged struct {
	at, units int64
}

func (b *slidingLog) follows() terms { return b.terms }

func (b *slidingLog) content(at int64) *big.Rat {
	left := b.terms.capacity
	for _, l := range b.taken {
		if at-l.at < b.terms.period.length {
			left -= l.units
		}
	}
	return whole(left)
}

// adopt keeps the units of the last period.
//
// Not documented: they count until they are a new period old, and the units that had
// expired before the change stay expired.
func (b *slidingLog) adopt(now int64, t terms) {
	b.forget(now)
	b.terms = t
}

// forget drops the units that count no more.
func (b *slidingLog) forget(now int64) {
	b.taken = slices.DeleteFunc(b.taken, func(l logged) bool { return now-l.at >= b.terms.period.length })
}

func (b *slidingLog) take(now, units int64) mark {
	b.forget(now)
	b.taken = append(b.taken, logged{now, units})
	return mark{at: now}
}

func (b *slidingLog) owe(now, units int64) {
	b.take(now, min(units, room(b, now)))
}

// giveBack returns the latest units that were taken at the same instant.
func (b *slidingLog) giveBack(_, units int64, from mark) {
	b.remove(units, func(l logged) bool { return l.at == from.at })
}

// refund returns the latest units.
//
// Not documented: a log has no present window. The latest units are those that would
// count for the longest.
func (b *slidingLog) refund(_, units int64) {
	b.remove(units, func(logged) bool { return true })
}

// remove removes the latest units that match from the log.
func (b *slidingLog) remove(units int64, of func(logged) bool) {
	for i := range slices.Backward(b.taken) {
		if l := &b.taken[i]; of(*l) {
			n := min(units, l.units)
			l.units -= n
			units -= n
		}
	}
}

func (b *slidingLog) clone() bucket {
	return &slidingLog{b.terms, slices.Clone(b.taken)}
}
