package reference

import "math/big"

// tokenBucket starts full, holds its capacity and refills at its rate.
type tokenBucket struct {
	terms terms
	// units are the content at an instant: a debt if negative.
	units *big.Rat
	at    int64
}

func (b *tokenBucket) follows() terms { return b.terms }

func (b *tokenBucket) content(at int64) *big.Rat {
	refilled := big.NewRat(b.terms.count, b.terms.period.length)
	refilled.Mul(refilled, whole(at-b.at))
	refilled.Add(refilled, b.units)
	return least(refilled, whole(b.terms.capacity))
}

// set sets the present content, which is never above the burst.
func (b *tokenBucket) set(now int64, units *big.Rat) {
	b.units, b.at = least(units, whole(b.terms.capacity)), now
}

// adopt carries the content over, up to the new burst, and a debt up to one new burst. A
// larger burst adds nothing at once.
//
// Not documented: a bucket that is full again counts as untouched, and an untouched
// bucket starts full, so it has the new burst at once. Otherwise it would matter whether
// its key had expired already.
func (b *tokenBucket) adopt(now int64, t terms) {
	held, full := b.content(now), whole(b.terms.capacity)
	b.terms = t
	if held.Cmp(full) == 0 {
		held = whole(t.capacity)
	}
	b.set(now, most(held, whole(-t.capacity)))
}

func (b *tokenBucket) take(now, units int64) mark {
	b.set(now, new(big.Rat).Sub(b.content(now), whole(units)))
	return mark{at: now}
}

func (b *tokenBucket) owe(now, units int64) {
	left := new(big.Rat).Sub(b.content(now), whole(units))
	b.set(now, most(left, whole(-b.terms.capacity)))
}

func (b *tokenBucket) giveBack(now, units int64, _ mark) {
	b.refund(now, units)
}

func (b *tokenBucket) refund(now, units int64) {
	b.set(now, new(big.Rat).Add(b.content(now), whole(units)))
}

func (b *tokenBucket) clone() bucket {
	c := *b // contents are immutable
	return &c
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func most(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}
