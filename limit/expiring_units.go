package limit

import (
	"slices"
	"sort"
)

// UnitLog is what a bucket holds whose units end one by one. Those of a sliding log end
// a period after they were taken: no period, wherever it begins, has more of them than
// the limit. The slots of concurrency end when their holder's time is up, or gives them
// back. The zero UnitLog is an empty bucket. They belong to one goroutine at a time.
type UnitLog struct {
	// units are in the order of at, from oldest.
	units []unit
}

// unit is some units that end together.
type unit struct {
	at     int64 // of a log when they were taken, of concurrency when the slot ends
	n      int64
	holder string // of a slot
}

// Slots of a State under AlgorithmSlidingLog and AlgorithmConcurrency. Such a state is
// no more than what a decision needs to know of the Units.
const (
	uUsed     = iota // units that have not ended
	nextFit          // when a check fits again that no longer does after as many as fit
	uLast            // when the last unit ends
	newExpiry        // when a unit would end that is taken now
	prevLast         // uLast before the last check
)

// MaxLogUnits bounds the units of a sliding log, and MaxSlots the slots of a limit of
// concurrency: each is kept by itself.
const (
	MaxLogUnits = 1_000
	MaxSlots    = 10_000
)

// ExpiresPerUnit reports whether a bucket's units end one by one, so that it is Units.
func (a Algorithm) ExpiresPerUnit() bool {
	return a == AlgorithmSlidingLog || a == AlgorithmConcurrency
}

// span is how long units last beyond unit.at.
func (p *Params) span() int64 {
	if p.Algorithm == AlgorithmSlidingLog {
		return p.Period
	}
	return 0
}

// State returns what a decision at now about units at a cost needs to know, see Decide,
// where slots are held for hold microseconds.
//
// Rewritten says that the clock stepped back behind units of a log: they count as taken
// now, and must be stored so even after a denial.
func (u *UnitLog) State(p *Params, now, cost, hold int64) (s State, rewritten bool) {
	live := u.live(p, now)
	for i := range live {
		s[uUsed] += live[i].n
	}
	mine := now + hold
	if p.Algorithm == AlgorithmSlidingLog {
		mine = now
		rewritten = len(live) > 0 && live[len(live)-1].at > now
	}
	granted := max(0, p.Capacity-s[uUsed]) / cost * cost
	n := s[uUsed] + granted + cost - p.Capacity
	fits, ok := at(p, live, now, n)
	if granted > 0 && (!ok || fits > now) {
		fits, _ = at(p, live, now, n-granted)
		fits = max(fits, now)
	}
	if len(live) > 0 {
		s[uLast], _ = at(p, live, now, s[uUsed])
		s[uLast] += p.span()
	}
	s[nextFit], s[newExpiry], s[prevLast] = fits+p.span(), mine+p.span(), s[uLast]
	return s, rewritten
}

// UnitLogState returns the state of units that somebody else keeps: how many have not
// ended, when a check fits that no longer does after as many as fit, when the last ends,
// and when one would that is taken now; the instants in microseconds.
func UnitLogState(used, fits, last, mine int64) State { return State{used, fits, last, mine, last} }

// live returns the units that have not ended.
func (u *UnitLog) live(p *Params, now int64) []unit {
	first := sort.Search(len(u.units), func(i int) bool { return u.units[i].at+p.span() > now })
	return u.units[first:]
}

// at returns the instant of the nth of the units, at most now for those of a log.
func at(p *Params, live []unit, now, n int64) (int64, bool) {
	if n <= 0 {
		return 0, false
	}
	for i := range live {
		if n -= live[i].n; n > 0 {
			continue
		}
		if p.Algorithm == AlgorithmSlidingLog {
			return min(live[i].at, now), true
		}
		return live[i].at, true
	}
	return 0, false
}

// decideUnitLog decides by the state of Units.
func decideUnitLog(p *Params, s *State, now, cost int64) (v Verdict) {
	if p.Algorithm == AlgorithmSlidingLog {
		v.Window, v.Left = now, p.Period
	}
	switch {
	case cost > p.Capacity:
		v.Wait = Never
	case s[uUsed]+cost <= p.Capacity:
		v.Allowed = true
		s[uUsed] += cost
		s[prevLast], s[uLast] = s[uLast], max(s[uLast], s[newExpiry])
	default:
		v.Wait = ceilMillis(s[nextFit] - now)
	}
	v.Remaining = max(0, p.Capacity-s[uUsed])
	v.Reset = max(0, ceilMillis(s[uLast]-now))
	return v
}

// Take takes units now, none for 0, which end when the state says that was made for
// it, for a holder. What has ended is forgotten.
func (u *UnitLog) Take(p *Params, now, units int64, s *State, holder string) {
	u.units = slices.Delete(u.units, 0, len(u.units)-len(u.live(p, now)))
	if p.Algorithm == AlgorithmSlidingLog {
		u.setBack(now)
	}
	if units > 0 {
		u.add(unit{s[newExpiry] - p.span(), units, holder})
	}
}

// setBack makes units of a clock that was set back ones of now.
func (u *UnitLog) setBack(now int64) {
	n := int64(0)
	for last := len(u.units) - 1; last >= 0 && u.units[last].at > now; last-- {
		n += u.units[last].n
		u.units = u.units[:last]
	}
	if n > 0 {
		u.add(unit{at: now, n: n})
	}
}

// add adds units; a holder has one slot.
func (u *UnitLog) add(one unit) {
	if one.holder != "" {
		u.units = slices.DeleteFunc(u.units, func(x unit) bool { return x.holder == one.holder })
	}
	i := sort.Search(len(u.units), func(i int) bool { return u.units[i].at > one.at })
	if i > 0 && one.holder == "" && u.units[i-1].at == one.at {
		u.units[i-1].n += one.n
		return
	}
	u.units = slices.Insert(u.units, i, one)
}

// LatestUnits stands for the instant of the latest units of a log, in Give.
const LatestUnits = -1

// Release gives units of a log back at now that were taken at the instant window, or the latest,
// or the slot of a holder, and returns how many there were. Where the clock was set back since
// they were taken, they are the latest: a check may have made all units ones of its own time.
func (u *UnitLog) Release(now, units, window int64, holder string) (given int64) {
	if window > now {
		window = LatestUnits
	}
	for i := len(u.units) - 1; i >= 0 && given < units; i-- {
		x := &u.units[i]
		if holder != x.holder || holder == "" && x.at != window && window != LatestUnits {
			continue
		}
		n := min(units-given, x.n)
		given += n
		if x.n -= n; x.n == 0 {
			u.units = slices.Delete(u.units, i, i+1)
		}
	}
	return given
}

// Overdraw takes units from a log that may not have them: at most so many as it holds more. The
// log may be one of a longer period now: what has ended by p stays.
func (u *UnitLog) Overdraw(p *Params, now, units int64) {
	s, _ := u.State(p, now, 1, 0)
	u.setBack(now)
	if units = min(units, 2*p.Capacity-s[uUsed]); units > 0 {
		u.add(unit{at: now, n: units})
	}
}

// Renew has the slot of a holder end at an instant, and reports whether it had one.
func (u *UnitLog) Renew(now, ends int64, holder string) bool {
	for i := range u.units {
		if x := u.units[i]; x.holder == holder && x.at > now {
			x.at = ends
			u.add(x)
			return true
		}
	}
	return false
}

// Holds reports whether a holder has a slot at now.
func (u *UnitLog) Holds(now int64, holder string) bool {
	return slices.ContainsFunc(u.units, func(x unit) bool { return x.holder == holder && x.at > now })
}

// Expires returns the instant from which all have ended.
func (u *UnitLog) Expires(p *Params) int64 {
	if len(u.units) == 0 {
		return 0
	}
	return u.units[len(u.units)-1].at + p.span()
}

// Entries returns how many groups of units are kept that end together, of which some
// may have ended: each takes 40 bytes and its holder's name.
func (u *UnitLog) Entries() int { return len(u.units) }

// Compact makes room where there is none: the last units of a log end with those that
// are taken now.
func (u *UnitLog) Compact(now int64) {
	if last := len(u.units) - 1; last >= 0 && u.units[last].at < now {
		u.units[last].at = now
	}
}
