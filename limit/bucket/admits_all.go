package bucket

import "math"

// AdmitsAllOf reports whether a bucket of p, which takes only the units that a bucket of before has admitted, never denies. It compares a
// token bucket and windows, and windows of different lengths: false means that it may deny, or that it is not known. Units that return by
// a refund are not counted.
func (p *Params) AdmitsAllOf(before *Params) bool {
	switch p.Algorithm {
	case AlgorithmTokenBucket:
		// Two windows side by side can be used up at once, and one more in each further window.
		return before.isExactWindow() && p.Capacity/2 >= before.Capacity &&
			mulDivCeil(before.Capacity, p.Period, before.shortest()) <= p.Count
	case AlgorithmFixedWindow, AlgorithmCalendarWindow, AlgorithmSlidingLog:
		return before.mostWithin(p.Period) <= p.Capacity
	default:
		return false
	}
}

// isExactWindow reports whether no window of p holds more units than its capacity. Those of AlgorithmSlidingWindow may.
func (p *Params) isExactWindow() bool {
	return p.Algorithm == AlgorithmFixedWindow || p.Algorithm == AlgorithmCalendarWindow || p.Algorithm == AlgorithmSlidingLog
}

// shortest returns a length in microseconds that no window of p falls short of. Days with 23 hours and months with 28 days are above nine
// tenths of the longest.
func (p *Params) shortest() int64 {
	if p.Algorithm == AlgorithmCalendarWindow {
		return p.Period / 10 * 9
	}
	return p.Period
}

// mostWithin returns the units that p admits at most within a time in microseconds, or more than that, and math.MaxInt64 for an
// algorithm that it does not know.
func (p *Params) mostWithin(time int64) int64 {
	switch {
	case p.Algorithm == AlgorithmTokenBucket:
		return p.Capacity + mulDivCeil(p.Count, time, p.Period)
	case p.isExactWindow():
		most, _ := MulDiv(p.Capacity, time/p.shortest()+2, 1)
		return most
	default:
		return math.MaxInt64
	}
}
