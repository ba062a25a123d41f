package limit

// State is what a bucket remembers between decisions: six integers whose
// meaning depends on the algorithm. The zero State is a bucket that was never
// touched: a full token bucket, an empty window. It is kept as it stands in
// the memory store, and packed by the scripts of package cluster. Where units end one
// by one it is made for each decision, see Units.
//
// Instants are microseconds since the Unix epoch, amounts are units.
type State [6]int64

// Slots of a State under AlgorithmTokenBucket. The bucket carries the rate it
// was written with, so that its content survives a change of the rate.
const (
	tbContent   = iota // whole units left at tbLast; negative when in debt
	tbRemainder        // tbPeriod-ths of one more unit, 0 <= tbRemainder < tbPeriod
	tbLast             // when content and remainder were worked out
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
	wCarryEnd        // when the carried units stop to count
)

// Touched reports whether the bucket holds anything: the zero State does not.
func (s *State) Touched() bool { return s[1] != 0 || s[2] != 0 || s[4] != 0 }

// Params is what an algorithm needs to know of a limit. It is comparable and
// immutable once compiled.
type Params struct {
	Algorithm Algorithm
	Count     int64 // units per Period, reduced with it by their gcd for token buckets
	Period    int64 // microseconds; for calendar windows the longest one
	Capacity  int64 // bucket size or window limit, in units
}

// Verdict is what one bucket says to one request.
type Verdict struct {
	Allowed   bool
	Remaining int64 // units left after this decision, never negative
	Wait      int64 // true wait in ms when denied; 0 when allowed; Never when it can never fit
	Reset     int64 // ms until the bucket is full again if nothing else arrives
	Window    int64 // start of the window that was charged, for refunds; 0 for token buckets
	Left      int64 // us until that window ends; 0 for token buckets
}

// Never is the wait of a request that can never be admitted.
const Never = -1

// Decide works out what a bucket in state s says to cost units at now, and
// makes s the bucket's next state: with the units taken if they are allowed.
// Bounds are the calendar boundaries for calendar windows, see Calendar.Bounds,
// and ignored by everything else. It returns ok = false when now lies outside
// Bounds: nothing is decided then.
//
// Rewritten says that the limit changed since the state was stored, or that the
// clock stepped back. The state must be stored then even after a denial,
// because the conversion must not be repeated from a later now.
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
	default:
		start := now - now%p.Period
		v, rewritten = decideFixedWindow(p, s, start, start+p.Period, now, cost)
	}
	return v, rewritten, true
}

// Undo undoes the taking of units that Decide has just allowed.
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

// Refund gives units back to the bucket at now. Window names the window in which they
// were charged (Verdict.Window): the refund is void when they no longer weigh, which for
// a sliding window is a period after its end. The content never exceeds the capacity.
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

// Overdraw takes units from a bucket that may not have them, but at most so many that it
// owes as much as it can hold. It returns ok = false when now lies outside Bounds.
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
		if s.Touched() && s[wStart] <= now { // it may be another limit's now
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

// windowToOverdraw returns the fixed window that units are owed in: the one that runs, or the next
// of its length, since the limit may have become another one.
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

// Expires returns the instant from which the state means the same as an
// untouched bucket: it may be forgotten then, and not before.
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
