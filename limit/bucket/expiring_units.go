package bucket

import (
	"slices"
	"sort"
)

// UnitLog is the content of a bucket whose units expire one by one. Units of a sliding
// log expire a period after they were taken: no period, wherever it begins, has more of
// them than the limit. Slots of concurrency expire when their holder's time is over, or
// when the holder returns them. The zero UnitLog is an empty bucket. It is not safe for
// concurrent use.
type UnitLog struct {
	// units are in the order of at, from oldest.
	units []unit
}

// unit is some units that expire together.
type unit struct {
	at     int64 // when the units of a log were taken; when a slot expires
	n      int64
	holder string // of a slot
}

// Slots of a State under AlgorithmSlidingLog and AlgorithmConcurrency. Such a state is
// only the part of the UnitLog that one decision needs.
const (
	uUsed     = iota // units that have not expired
	nextFit          // when a check fits again, after as many equal checks as fit now
	uLast            // when the last unit expires
	newExpiry        // when a unit expires that is taken now
	prevLast         // uLast before the last check
)

// MaxLogUnits bounds the units of a sliding log, and MaxSlots the slots of a limit of
// concurrency: each unit is stored separately.
const (
	MaxLogUnits = 1_000
	MaxSlots    = 10_000
)

// ExpiresPerUnit reports whether a bucket's units expire one by one, so that its content
// is a UnitLog.
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

// State returns the state for a decision at now about units at a cost, see Decide, where
// slots are held for hold microseconds.
//
// Rewritten reports that the clock stepped back behind units of a log: they count as
// taken now, and must be stored so even after a denial.
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

// UnitLogState returns the state of units that another process stores: how many have not
// expired, when a check fits again after as many as fit now, when the last unit expires,
// and when a unit expires that is taken now. The instants are in microseconds.
func UnitLogState(used, fits, last, mine int64) State { return State{used, fits, last, mine, last} }

// live returns the units that have not expired.
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

// decideUnitLog decides by the state of a UnitLog.
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

// Take takes units now for a holder, none for 0. They expire at the instant in s, which
// is the result of State for them. Take removes expired units.
func (u *UnitLog) Take(p *Params, now, units int64, s *State, holder string) {
	u.units = slices.Delete(u.units, 0, len(u.units)-len(u.live(p, now)))
	if p.Algorithm == AlgorithmSlidingLog {
		u.setBack(now)
	}
	if units > 0 {
		u.add(unit{s[newExpiry] - p.span(), units, holder})
	}
}

// setBack moves units that lie after now, because the clock was set back, to now.
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

// LatestUnits stands for the instant of the latest units of a log, in Release.
const LatestUnits = -1

// Release returns units to the bucket at now: those of a log that were taken at the
// instant window, or the latest ones, or the slot of a holder. It returns how many units
// it removed. If the clock was set back since they were taken, it removes the latest: a
// check may have moved all units to its own time.
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

// Overdraw takes units from a log that may not have them, up to twice its capacity in
// all. Units that have expired by p stay, because the log may belong to a limit with a
// longer period now.
func (u *UnitLog) Overdraw(p *Params, now, units int64) {
	s, _ := u.State(p, now, 1, 0)
	u.setBack(now)
	if units = min(units, 2*p.Capacity-s[uUsed]); units > 0 {
		u.add(unit{at: now, n: units})
	}
}

// Renew makes the slot of a holder expire at the instant ends, and reports whether the
// holder had one.
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

// Expires returns the instant at which all units have expired.
func (u *UnitLog) Expires(p *Params) int64 {
	if len(u.units) == 0 {
		return 0
	}
	return u.units[len(u.units)-1].at + p.span()
}

// Entries returns how many groups of units the log stores, expired ones included. Each
// takes 40 bytes and its holder's name.
func (u *UnitLog) Entries() int { return len(u.units) }

// Compact makes room in a full log: its last units expire together with those that are
// taken now.
func (u *UnitLog) Compact(now int64) {
	if last := len(u.units) - 1; last >= 0 && u.units[last].at < now {
		u.units[last].at = now
	}
}
