package limit

import (
	"fmt"
	"math"
)

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

// DescribeOnError describes how n instances decide requests while the store is
// unavailable, and how far they may exceed the limit.
func (l *Limit) DescribeOnError(n int64) string {
	if n <= 1 || l.Action != ActionLimit || l.OnError == OnErrorClosed {
		return l.OnError.String()
	}
	share := l.Params.Share(n).Capacity
	text := fmt.Sprintf("%s: each of %d instances admits %d units at once and 1/%d of the rate", l.OnError, n, share, n)
	if l.Params.Algorithm == AlgorithmConcurrency {
		text = fmt.Sprintf("%s: each of %d instances gives %d slots, beside those held before", l.OnError, n, share)
	}
	if over := share*n - l.Params.Capacity; over > 0 {
		text += fmt.Sprintf(", together up to %d units beyond the limit", over)
	}
	return text
}
