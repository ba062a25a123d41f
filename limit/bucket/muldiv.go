package bucket

import "math/bits"

// maxQuotient bounds the quotients of mulDiv: an instant that many microseconds ahead
// still fits an int64. No limit of a store has larger quotients. This instance's share of
// a slow limit may, with a million instances.
const maxQuotient = 1 << 61

// MulDiv returns x*m/w and x*m%w with the full precision of the product, for x, m >= 0
// and w > 0; or maxQuotient and 0 if the quotient exceeds maxQuotient. The scripts reach
// the same results with long division, because Lua's numbers are exact only to 2^53.
func MulDiv(x, m, w int64) (quo, rem int64) {
	hi, lo := bits.Mul64(uint64(x), uint64(m))
	if hi == 0 {
		q := lo / uint64(w)
		if q > maxQuotient {
			return maxQuotient, 0
		}
		return int64(q), int64(lo - q*uint64(w))
	}
	if hi >= uint64(w) {
		return maxQuotient, 0
	}
	q, r := bits.Div64(hi, lo, uint64(w))
	if q > maxQuotient {
		return maxQuotient, 0
	}
	return int64(q), int64(r)
}

// mulDivCeil returns x*m/w rounded up.
func mulDivCeil(x, m, w int64) int64 {
	quo, rem := MulDiv(x, m, w)
	if rem > 0 {
		quo++
	}
	return quo
}

// MulDivAtMost returns x*m/w or most, whichever is less; the quotient may be
// of any size.
func MulDivAtMost(x, m, w, most int64) int64 {
	hi, lo := bits.Mul64(uint64(x), uint64(m))
	if hi >= uint64(w) {
		return most
	}
	q, _ := bits.Div64(hi, lo, uint64(w))
	return int64(min(q, uint64(most)))
}

// floorDiv returns a/b rounded towards minus infinity, for b > 0.
func floorDiv(a, b int64) int64 {
	q := a / b
	if q*b > a {
		q--
	}
	return q
}

// ceilMillis turns microseconds into milliseconds, rounded up.
func ceilMillis(micros int64) int64 {
	if micros <= 0 {
		return 0
	}
	return (micros + 999) / 1000
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
