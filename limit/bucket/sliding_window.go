package bucket

// A sliding window keeps two counters, for the current and the previous window, both
// aligned to the epoch. The weight of the previous one is its overlap with the last
// period:
//
//	prev * (period - elapsed) + (used + cost) * period <= capacity * period
//
// Everything but the first term is a multiple of period. The comparison is therefore the
// same with the first term divided by period and rounded up.

func decideSlidingWindow(p *Params, s *State, now, cost int64) (v Verdict, rewritten bool) {
	rewritten = enterSlidingWindow(p.Period, s, now)
	v.Window, v.Left = s[wStart], s[wEnd]-now
	used := s[wUsed] + s[wCarry] + slidingWeight(s, now)
	switch {
	case cost > p.Capacity:
		v.Wait = Never
	case used+cost <= p.Capacity:
		v.Allowed = true
		s[wUsed] += cost
		used += cost
	default:
		v.Wait = ceilMillis(slidingWindowFits(p.Capacity-cost, s, now) - now)
	}
	v.Remaining = max(0, p.Capacity-used)
	v.Reset = ceilMillis(slidingWindowExpires(s) - now)
	return v, rewritten
}

// slidingWeight returns the weight of the previous window at now, which lies in the
// current one.
func slidingWeight(s *State, now int64) int64 {
	if s[wPrev] == 0 {
		return 0
	}
	return mulDivCeil(s[wPrev], s[wEnd]-now, s[wEnd]-s[wStart])
}

// enterSlidingWindow makes the window of the given period that holds now the
// current one of s.
func enterSlidingWindow(period int64, s *State, now int64) (rewritten bool) {
	start := now - now%period
	switch old := s[wEnd] - s[wStart]; {
	case old == 0: // untouched
		s[wStart], s[wEnd] = start, start+period
	case s[wStart] > now: // the clock stepped back
		carryWindow(s, s[wUsed]+s[wPrev], s[wEnd], now)
		s[wStart], s[wEnd], s[wUsed], s[wPrev] = start, start+period, 0, 0
		rewritten = true
	default:
		slideWindow(s, old, now)
		if old != period {
			used := s[wUsed] + slidingWeight(s, now)
			carryWindow(s, used, s[wEnd], now)
			s[wStart], s[wEnd], s[wUsed], s[wPrev] = start, start+period, 0, 0
			rewritten = s[wCarry] > 0
		}
	}
	if s[wCarryEnd] <= now {
		s[wCarry], s[wCarryEnd] = 0, 0
	}
	return rewritten
}

// slideWindow moves s forward, by its own period, to the window that holds now.
func slideWindow(s *State, period, now int64) {
	switch {
	case now < s[wEnd]:
	case now < s[wEnd]+period:
		s[wPrev], s[wUsed] = s[wUsed], 0
		s[wStart], s[wEnd] = s[wEnd], s[wEnd]+period
	default:
		s[wPrev], s[wUsed] = 0, 0
		s[wStart] = now - now%period
		s[wEnd] = s[wStart] + period
	}
}

// refundSlidingWindow returns units to the current window, or to the previous one.
func refundSlidingWindow(s State, units, window, now int64) State {
	moved, period := s, s[wEnd]-s[wStart]
	slideWindow(&moved, period, now)
	switch {
	case window == moved[wStart] && moved[wUsed] > 0:
		moved[wUsed] = max(0, moved[wUsed]-units)
	case window == moved[wStart]-period && moved[wPrev] > 0:
		moved[wPrev] = max(0, moved[wPrev]-units)
	default:
		return s
	}
	return moved
}

// slidingWindowFits returns the instant at which no more than room units count, the
// carried ones included. It is called only while more count.
func slidingWindowFits(room int64, s *State, now int64) int64 {
	if s[wCarry] == 0 {
		return slidingFitsAlone(room, s, now)
	}
	at := max(s[wCarryEnd], slidingFitsAlone(room, s, now))
	if s[wCarry] <= room {
		at = min(at, slidingFitsAlone(room-s[wCarry], s, now))
	}
	return at
}

// slidingFitsAlone is slidingWindowFits without the carried units. The weight falls
// steadily, in this window with the previous counter and in the next one with the current
// counter, so that the first instant found is the earliest.
func slidingFitsAlone(room int64, s *State, now int64) int64 {
	period := s[wEnd] - s[wStart]
	if spare := room - s[wUsed]; spare >= 0 {
		if spare >= s[wPrev] {
			return now
		}
		// prev * (period - elapsed) <= spare * period
		left, _ := MulDiv(spare, period, s[wPrev])
		if left > 0 {
			return max(now, s[wEnd]-left)
		}
	}
	if room >= s[wUsed] {
		return s[wEnd]
	}
	left, _ := MulDiv(room, period, s[wUsed])
	return s[wEnd] + period - left
}

func slidingWindowExpires(s *State) int64 {
	at := s[wCarryEnd]
	switch {
	case s[wUsed] > 0:
		at = max(at, 2*s[wEnd]-s[wStart])
	case s[wPrev] > 0:
		at = max(at, s[wEnd])
	}
	return at
}
