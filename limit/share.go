package limit

// Share returns the limit as one of n instances enforces it alone: a token
// bucket with an n-th of the rate and an n-th of the capacity, at least one
// unit.
func (l *Limit) Share(n int64) *Limit {
	share := *l
	p := l.Params
	g := gcd(p.Count, p.Period)
	p.Algorithm = AlgorithmTokenBucket
	p.Count, p.Period, p.Capacity = p.Count/g, p.Period/g, max(1, p.Capacity/n)
	if g = gcd(p.Count, n); g > 1 {
		p.Count, n = p.Count/g, n/g
	}
	p.Period = min(p.Period*n, MaxPeriod)
	share.Params, share.calendar = p, nil
	return &share
}
