package bucket

import "math"

// Share returns the limit that one of n instances enforces alone: a token bucket with an
// n-th of the rate and an n-th of the capacity, but at least one unit.
func (p *Params) Share(n int64) Params {
	share := *p
	g := gcd(p.Count, p.Period)
	share.Algorithm = AlgorithmTokenBucket
	share.Count, share.Period, share.Capacity = p.Count/g, p.Period/g, max(1, p.Capacity/n)
	if g = gcd(share.Count, n); g > 1 {
		share.Count, n = share.Count/g, n/g
	}
	share.Period = min(share.Period, math.MaxInt64/n) * n
	return share
}
