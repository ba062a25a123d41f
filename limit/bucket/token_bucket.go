package bucket

import "math/bits"

// A token bucket holds content + remainder/period units. It refills by count units per
// period microseconds. The remainder is kept, so that no fraction of a unit is ever lost:
// over any history the refilled units equal the exact rational count/period * elapsed,
// rounded down once.

func decideTokenBucket(p *Params, s *State, now, cost int64) (v Verdict, rewritten bool) {
	rewritten = refillTokenBucket(p, s, now)
	switch {
	case cost > p.Capacity:
		v.Wait = Never
	case cost <= s[tbContent]:
		v.Allowed = true
		s[tbContent] -= cost
	default:
		v.Wait = ceilMillis(tokenBucketReaches(s, cost))
	}
	v.Remaining = max(0, s[tbContent])
	v.Reset = ceilMillis(tokenBucketFullIn(s))
	return v, rewritten
}

// refillTokenBucket refills s until now, first at the rate with which it was written,
// then converts it to p: the content carries over, up to the new capacity, and a debt
// down to it.
func refillTokenBucket(p *Params, s *State, now int64) (rewritten bool) {
	if !s.Touched() {
		*s = State{p.Capacity, 0, now, p.Count, p.Period, p.Capacity}
		return false
	}
	if elapsed := now - s[tbLast]; elapsed < 0 {
		// The clock stepped back: the content stays and refills from here.
		rewritten = true
	} else {
		addTokens(s, elapsed)
	}
	s[tbLast] = now
	if s[tbCount] != p.Count || s[tbPeriod] != p.Period || s[tbCapacity] != p.Capacity {
		rewritten = true
		s[tbRemainder], _ = MulDiv(s[tbRemainder], p.Period, s[tbPeriod])
		// A full bucket equals an untouched one: its key may have expired already.
		if s[tbContent] >= min(p.Capacity, s[tbCapacity]) {
			s[tbContent], s[tbRemainder] = p.Capacity, 0
		}
		s[tbCount], s[tbPeriod], s[tbCapacity] = p.Count, p.Period, p.Capacity
	}
	if s[tbContent] < -p.Capacity { // the largest debt
		s[tbContent], s[tbRemainder], rewritten = -p.Capacity, 0, true
	}
	return rewritten
}

// WithCapacity returns the state of a token bucket at now with another capacity. Unlike a
// bucket whose limit changes, a full bucket does not get more units at once.
func WithCapacity(s State, capacity, now int64) State {
	own := Params{Algorithm: AlgorithmTokenBucket, Count: s[tbCount], Period: s[tbPeriod], Capacity: s[tbCapacity]}
	refillTokenBucket(&own, &s, now)
	s[tbCapacity] = capacity
	if s[tbContent] >= capacity {
		s[tbContent], s[tbRemainder] = capacity, 0
	}
	return s
}

// addTokens refills s by the units of elapsed microseconds.
func addTokens(s *State, elapsed int64) {
	hi, lo := bits.Mul64(uint64(elapsed), uint64(s[tbCount]))
	period := uint64(s[tbPeriod])
	if hi < period {
		units, rem := bits.Div64(hi, lo, period)
		if rem += uint64(s[tbRemainder]); rem >= period {
			units, rem = units+1, rem-period
		}
		if units < uint64(s[tbCapacity]-s[tbContent]) {
			s[tbContent], s[tbRemainder] = s[tbContent]+int64(units), int64(rem)
			return
		}
	}
	s[tbContent], s[tbRemainder] = max(s[tbContent], s[tbCapacity]), 0
}

// tokenBucketFullIn returns the microseconds after s[tbLast] at which the bucket is full.
func tokenBucketFullIn(s *State) int64 { return tokenBucketReaches(s, s[tbCapacity]) }

// tokenBucketReaches returns the least number of microseconds after s[tbLast]
// at which the content is at least units: the least e with
// e*count >= (units-content)*period - remainder.
func tokenBucketReaches(s *State, units int64) int64 {
	missing := units - s[tbContent]
	if missing <= 0 {
		return 0
	}
	quo, rem := MulDiv(missing, s[tbPeriod], s[tbCount])
	return quo - floorDiv(s[tbRemainder]-rem, s[tbCount])
}

func refundTokenBucket(s State, units int64) State {
	s[tbContent] += units
	if s[tbContent] >= s[tbCapacity] {
		s[tbContent], s[tbRemainder] = s[tbCapacity], 0
	}
	return s
}

// maxLevel bounds the levels of a token bucket, so that sums of them stay exact
// in a Lua number.
const maxLevel = 1 << 52

// HasLevel reports whether one number, the level, can represent the content of the
// bucket: content*Period + remainder. It is false for buckets so large that a Lua number
// would not hold it.
func (p *Params) HasLevel() bool {
	hi, lo := bits.Mul64(uint64(p.Capacity), uint64(p.Period))
	return p.Algorithm == AlgorithmTokenBucket && hi == 0 && lo < maxLevel
}

// StateAtLevel returns the state of a token bucket that has the level at now.
func (p *Params) StateAtLevel(level, now int64) State {
	content := floorDiv(level, p.Period)
	return p.StateWith(content, level-content*p.Period, now)
}

// Rate returns the rate with which a token bucket's state was last decided: count units
// in period microseconds.
func (s *State) Rate() (count, period int64) { return s[tbCount], s[tbPeriod] }

// StateWith returns the state of a token bucket that holds content whole units
// and remainder Period-ths of one more at now.
func (p *Params) StateWith(content, remainder, now int64) State {
	return State{content, remainder, now, p.Count, p.Period, p.Capacity}
}
