package edge

import (
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const second = int64(1e6) // in the microseconds of limits

// most returns how many requests one bucket of a limit admits at most in any t microseconds,
// wherever they begin. A request costs at least one unit.
func most(l *limit.Limit, t int64) int64 {
	p := l.Undivided
	var units int64
	switch {
	case p.Algorithm == bucket.AlgorithmTokenBucket:
		units = p.Capacity + bucket.MulDivAtMost(t, p.Count, p.Period, maxRequests)
	case p.Algorithm == bucket.AlgorithmSlidingLog:
		units = p.Capacity * ceilDiv(t, p.Period)
	default: // of the windows that a time meets, the first and the last may be parts of windows
		units = p.Capacity * (ceilDiv(t, shortest(l)) + 1)
	}
	units += leased(l)
	if l.Store != limit.PlacementShared { // the store's count and the instances' own
		units *= 2
	}
	return min(units, maxRequests) / max(1, l.FixedCost)
}

// leased returns how many units instances may hold on lease, and use in a later time than they took them.
func leased(l *limit.Limit) int64 {
	if !l.Lease.On {
		return 0
	}
	return ceilDiv(l.Undivided.Capacity, 20)
}

// maxRequests bounds what one limit admits in a month and less: the edge takes no number as large, and
// sums of some thousands do not overflow.
const maxRequests = 1 << 50

// shortest returns the length of the shortest window of a limit: a calendar changes its clocks.
func shortest(l *limit.Limit) int64 {
	const hour = 3600 * second
	switch l.Rate.Calendar {
	case bucket.CalendarDay:
		return 23 * hour
	case bucket.CalendarMonth:
		return (28*24 - 1) * hour
	default:
		return l.Undivided.Period
	}
}

func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }

// total returns what limits admit together at most, each by one bucket.
func total(limits []*limit.Limit, t int64) (sum int64) {
	for _, l := range limits {
		sum += most(l, t)
	}
	return sum
}
