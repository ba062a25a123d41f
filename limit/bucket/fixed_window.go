package bucket

// A fixed window counts the units used between two instants. If the shape of the window
// changed (another period, another time zone) or the clock stepped back, the units of the
// old window are carried: they count until that window would have ended.

func decideFixedWindow(p *Params, s *State, start, end, now, cost int64) (v Verdict, rewritten bool) {
	rewritten = enterFixedWindow(s, start, end, now)
	v.Window, v.Left = start, end-now
	switch {
	case cost > p.Capacity:
		v.Wait = Never
	case s[wUsed]+s[wCarry]+cost <= p.Capacity:
		v.Allowed = true
		s[wUsed] += cost
	default:
		v.Wait = ceilMillis(fixedWindowFits(p.Capacity-cost, s) - now)
	}
	v.Remaining = max(0, p.Capacity-s[wUsed]-s[wCarry])
	v.Reset = ceilMillis(fixedWindowExpires(s) - now)
	return v, rewritten
}

// enterFixedWindow makes [start, end) the current window of s.
func enterFixedWindow(s *State, start, end, now int64) (rewritten bool) {
	if s[wStart] != start || s[wEnd] != end {
		if s[wEnd] > now && s[wUsed]+s[wCarry] > 0 {
			carryWindow(s, s[wUsed], s[wEnd], now)
			rewritten = true
		}
		s[wStart], s[wEnd], s[wUsed], s[wPrev] = start, end, 0, 0
	}
	if s[wCarryEnd] <= now {
		s[wCarry], s[wCarryEnd] = 0, 0
	}
	return rewritten
}

// carryWindow moves used units of the current window, which count until end, into the
// carry. If that window lies in the future, the clock stepped back. The window then runs
// from now for the rest of its length, so that no units are created and the bucket does
// not freeze.
func carryWindow(s *State, used, end, now int64) {
	carry, carryEnd := s[wCarry], s[wCarryEnd]
	if s[wStart] > now {
		back := s[wStart] - now
		end -= back
		carryEnd -= back
	}
	if carryEnd <= now {
		carry, carryEnd = 0, 0
	}
	if used > 0 {
		carry, carryEnd = carry+used, max(carryEnd, end)
	}
	s[wCarry], s[wCarryEnd] = carry, carryEnd
}

// fixedWindowFits returns the instant at which no more than room units count. It is
// called only while more count.
func fixedWindowFits(room int64, s *State) int64 {
	at := max(s[wEnd], s[wCarryEnd])
	if s[wUsed] <= room {
		at = min(at, s[wCarryEnd])
	}
	if s[wCarry] <= room {
		at = min(at, s[wEnd])
	}
	return at
}

func fixedWindowExpires(s *State) int64 {
	if s[wUsed] == 0 {
		return s[wCarryEnd]
	}
	return max(s[wEnd], s[wCarryEnd])
}
