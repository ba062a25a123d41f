package reference

import "math/big"

// bucket is the state of one limit for one set of values.
//
// A bucket follows a changed limit from the first check after the change, and the old one
// until then.
//
// Not documented: a denied check and RL.REFUND count as such a check. RL.PEEK, RL.COMMIT,
// RL.CANCEL, RL.RENEW and RL.RELEASE do not.
type bucket interface {
	// follows returns the terms of the limit at the last check.
	follows() terms
	// adopt changes the terms, of the same algorithm.
	adopt(now int64, t terms)
	// content returns the content at an instant if nothing is taken until then. It never
	// decreases as time goes on.
	content(at int64) *big.Rat
	clone() bucket
}

// counter is a bucket of units.
type counter interface {
	bucket
	// take takes units, whether or not the bucket has them.
	take(now, units int64) mark
	// owe takes units, but no more than leave a debt of one capacity.
	owe(now, units int64)
	// giveBack returns units to the window from which they were taken.
	giveBack(now, units int64, from mark)
	// refund returns units to the present window.
	refund(now, units int64)
}

// mark is where units were taken.
type mark struct {
	at int64
	// start and era are the window's.
	start int64
	era   int
}

// entry is a bucket and its tenant.
type entry struct {
	bucket  bucket
	limitID string
	// tenant is empty for a bucket of a shared limit.
	tenant string
}

// newBucket returns a bucket from which nothing has been taken.
func newBucket(now int64, t terms) bucket {
	switch t.algorithm {
	case slidingWindowWord:
		return &slidingWindow{terms: t}
	case fixedWindowWord:
		return &fixedWindow{terms: t}
	case slidingLogWord:
		return &slidingLog{terms: t}
	case concurrencyWord:
		return &slots{terms: t, held: map[int64]int64{}}
	default:
		return &tokenBucket{terms: t, units: whole(t.capacity), at: now}
	}
}

// farthest is the longest wait, in milliseconds, that can be counted in microseconds from
// any instant of this age.
const farthest = 1 << 53

// wait returns the least whole number of milliseconds after which the bucket has this
// number of units if nothing is taken. The units must be within its capacity.
func wait(b bucket, now, units int64) int64 {
	need := whole(units)
	enough := func(ms int64) bool { return b.content(now+ms*millisecond).Cmp(need) >= 0 }
	if enough(0) {
		return 0
	}
	short, long := int64(0), int64(1)
	for !enough(long) {
		if short, long = long, 2*long; long > farthest {
			panic("reference: a wait is longer than can be counted")
		}
	}
	for long-short > 1 {
		if middle := short + (long-short)/2; enough(middle) {
			long = middle
		} else {
			short = middle
		}
	}
	return long
}

func whole(units int64) *big.Rat { return new(big.Rat).SetInt64(units) }

// remaining returns the whole units of a content, and 0 for a debt.
func remaining(content *big.Rat) int64 {
	return max(0, floor(content))
}

// floor returns the largest integer that is not above r.
func floor(r *big.Rat) int64 {
	// Div rounds down, as the denominator is positive.
	return new(big.Int).Div(r.Num(), r.Denom()).Int64()
}

// room returns how many whole units may be taken until a bucket owes one capacity.
//
// Not documented: a token bucket owes exactly one capacity in the end. The others count
// whole units, and owe up to one unit less.
func room(b bucket, now int64) int64 {
	return max(0, floor(b.content(now))+b.follows().capacity)
}
