package limit

import "math"

// Share returns the limit as one of n instances enforces it alone, see
// Params.Share: with a capacity of cost units where the whole limit can hold that.
func (l *Limit) Share(n, cost int64) *Limit {
	share := *l
	if cost > l.Params.Capacity {
		cost = 1
	}
	share.Params, share.calendar = l.Params.Share(n, cost), nil
	return &share
}

// Share returns what one of n instances enforces alone of a limit: a token bucket
// with an n-th of the rate and an n-th of the capacity, but at least one unit, and
// at least least units.
func (p *Params) Share(n, least int64) Params {
	share := *p
	g := gcd(p.Count, p.Period)
	share.Algorithm = AlgorithmTokenBucket
	share.Count, share.Period, share.Capacity = p.Count/g, p.Period/g, max(1, least, p.Capacity/n)
	if g = gcd(share.Count, n); g > 1 {
		share.Count, n = share.Count/g, n/g
	}
	share.Period = min(share.Period, math.MaxInt64/n) * n
	return share
}
