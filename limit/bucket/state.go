package bucket

// State is the content of a bucket between decisions: six integers whose meaning depends
// on the algorithm. The zero State is an untouched bucket: a full token bucket, an empty
// window. The memory store keeps it as it is, and the scripts of package cluster pack it.
// For algorithms with expiring units it is made for each decision, see UnitLog.
//
// Instants are microseconds since the Unix epoch, amounts are units.
type State [6]int64

// Slots of a State under AlgorithmTokenBucket. The state includes the rate with which it
// was written, so that its content survives a change of the rate.
const (
	tbContent   = iota // whole units left at tbLast; negative when in debt
	tbRemainder        // tbPeriod-ths of one more unit, 0 <= tbRemainder < tbPeriod
	tbLast             // when content and remainder were computed
	tbCount            // units refilled per tbPeriod
	tbPeriod           // microseconds, reduced with tbCount by their gcd
	tbCapacity         // the capacity at tbLast
)

// Slots of a State under AlgorithmFixedWindow and AlgorithmSlidingWindow.
const (
	wStart    = iota // start of the current window
	wEnd             // its end, exclusive
	wUsed            // units used in it
	wPrev            // units used in the window before; always 0 in a fixed window
	wCarry           // units used in a window of another shape that still runs
	wCarryEnd        // when the carried units stop counting
)

// Touched reports whether the bucket has any content: the zero State has none.
func (s *State) Touched() bool { return s[1] != 0 || s[2] != 0 || s[4] != 0 }

// Params is the part of a limit that its algorithm needs. It is comparable, and immutable
// once compiled.
type Params struct {
	Algorithm Algorithm
	Count     int64 // units per Period, reduced with it by their gcd for token buckets
	Period    int64 // microseconds; for calendar windows the longest one
	Capacity  int64 // bucket size or window limit, in units
}

// Verdict is the answer of one bucket to one request.
type Verdict struct {
	Allowed   bool
	Remaining int64 // units left after this decision, never negative
	Wait      int64 // true wait in ms when denied; 0 when allowed; Never when it can never fit
	Reset     int64 // ms until the bucket is full again without further requests
	Window    int64 // start of the window that was charged, for refunds; 0 for token buckets
	Left      int64 // us until that window ends; 0 for token buckets
}

// Never is the wait of a request that can never be admitted.
const Never = -1

// Decide decides whether a bucket in state s admits cost units at now, and makes s the
// bucket's next state: with the units taken if they are admitted. Bounds are the calendar
// boundaries for calendar windows, see Calendar.Bounds; other algorithms ignore them.
// Decide returns ok = false, and decides nothing, if now lies outside Bounds.
//
// Rewritten reports that the limit changed since the state was stored, or that the clock
// stepped back. The state must be stored then even after a denial, because the conversion
// must not be repeated from a later now.
func Decide(p *Params, bounds *Bounds, s *State, now, cost int64) (v Verdict, rewritten, ok bool) {
	switch p.Algorithm {
	case AlgorithmTokenBucket:
		v, rewritten = decideTokenBucket(p, s, now, cost)
	case AlgorithmSlidingWindow:
		v, rewritten = decideSlidingWindow(p, s, now, cost)
	case AlgorithmSlidingLog, AlgorithmConcurrency:
		v = decideUnitLog(p, s, now, cost)
	case AlgorithmCalendarWindow:
		start, end, ok := bounds.window(now)
		if !ok {
			return v, false, false
		}
		v, rewritten = decideFixedWindow(p, s, start, end, now, cost)
	case AlgorithmFixedWindow:
		start := now - now%p.Period
		v, rewritten = decideFixedWindow(p, s, start, start+p.Period, now, cost)
	default:
		panic("bucket: unknown algorithm") // limits are compiled with known ones only
	}
	return v, rewritten, true
}

// Undo reverses the taking of units that Decide has just allowed.
func Undo(p *Params, s *State, units int64) {
	switch {
	case p.Algorithm == AlgorithmTokenBucket:
		s[tbContent] += units
	case p.Algorithm.ExpiresPerUnit():
		s[uUsed] -= units
		s[uLast] = s[prevLast]
	default:
		s[wUsed] -= units
	}
}

// Refund returns units to the bucket at now. Window identifies the window in which they
// were charged (Verdict.Window): the refund is void if that window no longer has any
// weight, which for a sliding window is a period after its end. The content never exceeds
// the capacity.
func Refund(p *Params, s State, units, window, now int64) State {
	switch {
	case !s.Touched():
		return s
	case p.Algorithm == AlgorithmTokenBucket:
		return refundTokenBucket(s, units)
	case p.Algorithm == AlgorithmSlidingWindow:
		return refundSlidingWindow(s, units, window, now)
	}
	if s[wStart] == window && now < s[wEnd] {
		s[wUsed] = max(0, s[wUsed]-units)
	}
	return s
}

// Overdraw takes units from a bucket that may not have them, until its debt equals its
// capacity. It returns ok = false if now lies outside Bounds.
func Overdraw(p *Params, bounds *Bounds, s State, now, units int64) (next State, ok bool) {
	switch p.Algorithm {
	case AlgorithmTokenBucket:
		by := *p
		if s.Touched() { // it stays the bucket of the limit that wrote it last
			by.Count, by.Period, by.Capacity = s[tbCount], s[tbPeriod], s[tbCapacity]
		}
		refillTokenBucket(&by, &s, now)
		s[tbContent] -= max(0, min(units, s[tbContent]+by.Capacity))
		return s, true
	case AlgorithmSlidingWindow:
		period := p.Period
		if s.Touched() && s[wStart] <= now { // it may belong to another limit now
			period = s[wEnd] - s[wStart]
		}
		enterSlidingWindow(period, &s, now)
	default:
		start, end, ok := p.windowToOverdraw(bounds, &s, now)
		if !ok {
			return s, false
		}
		enterFixedWindow(&s, start, end, now)
	}
	used := s[wUsed] + s[wCarry]
	if p.Algorithm == AlgorithmSlidingWindow {
		used += slidingWeight(&s, now)
	}
	s[wUsed] += max(0, min(units, 2*p.Capacity-used))
	return s, true
}

// windowToOverdraw returns the fixed window in which units are overdrawn: the current
// one, or the next of its length, since the limit may have changed.
func (p *Params) windowToOverdraw(bounds *Bounds, s *State, now int64) (start, end int64, ok bool) {
	length := s[wEnd] - s[wStart]
	switch {
	case s.Touched() && s[wStart] <= now && now < s[wEnd]:
		return s[wStart], s[wEnd], true
	case p.Algorithm == AlgorithmCalendarWindow:
		return bounds.window(now)
	case !s.Touched() || s[wStart] > now || s[wStart]%length > 0:
		length = p.Period
	}
	start = now - now%length
	return start, start + length, true
}

// Expires returns the instant from which the state equals an untouched bucket: from then
// on, and not before, it may be deleted.
func Expires(a Algorithm, s *State) int64 {
	switch a {
	case AlgorithmTokenBucket:
		return s[tbLast] + tokenBucketFullIn(s)
	case AlgorithmSlidingWindow:
		return slidingWindowExpires(s)
	default:
		return fixedWindowExpires(s)
	}
}
