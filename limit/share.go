package limit

import "math"

// Share returns the limit as one of n instances enforces it alone: a token
// bucket with an n-th of the rate and an n-th of the capacity, but at least one
// unit, and at least cost where the whole limit can hold that.
func (l *Limit) Share(n, cost int64) *Limit {
	share := *l
	p := l.Params
	least := int64(1)
	if cost <= p.Capacity {
		least = max(least, cost)
	}
	g := gcd(p.Count, p.Period)
	p.Algorithm = AlgorithmTokenBucket
	p.Count, p.Period, p.Capacity = p.Count/g, p.Period/g, max(least, p.Capacity/n)
	if g = gcd(p.Count, n); g > 1 {
		p.Count, n = p.Count/g, n/g
	}
	p.Period = min(p.Period, math.MaxInt64/n) * n
	share.Params, share.calendar = p, nil
	return &share
}
