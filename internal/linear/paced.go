package linear

// span is the numbers from lo to hi, both included.
type span struct{ lo, hi int64 }

// within returns the intersection of both spans, and whether it is not empty.
func (s span) within(o span) (span, bool) {
	both := span{max(s.lo, o.lo), min(s.hi, o.hi)}
	return both, both.lo <= both.hi
}

// plus returns the sums of a number of s and one of o.
func (s span) plus(o span) span { return span{s.lo + o.lo, s.hi + o.hi} }

// The state of a Paced bucket is the time at which it will be full, or was, in
// microseconds. It is known as a span, because a decision is made between two known
// instants. Computing with spans admits more states than are possible, and excludes no
// possible one.

// pace is the knowledge of a Paced bucket at the time of a decision.
type pace struct {
	full span // when it is full
	at   span // when the decision is made
	lack span // how long it takes to be full then
}

func (l *Limit) pace(full, at span) pace {
	return pace{full, at, span{max(0, full.lo-at.hi), max(0, full.hi-at.lo)}}
}

// lacks narrows p to where lack is in a span, and reports whether that is possible.
func (p *pace) lacks(s span) bool {
	var ok [3]bool
	if p.lack, ok[0] = p.lack.within(s); !ok[0] {
		return false
	}
	if p.lack.lo > 0 {
		p.full, ok[1] = p.full.within(p.at.plus(p.lack))
		p.at, ok[2] = p.at.within(span{p.full.lo - p.lack.hi, p.full.hi - p.lack.lo})
		return ok[1] && ok[2]
	}
	p.full.hi = min(p.full.hi, p.at.hi+p.lack.hi)
	p.at.lo = max(p.at.lo, p.full.lo-p.lack.hi)
	return p.full.lo <= p.full.hi && p.at.lo <= p.at.hi
}

// lackOf returns the lack of a bucket with left whole units; with none left it may have a
// debt.
func (l *Limit) lackOf(left int64) span {
	most := (l.Capacity - left) * l.every()
	if left == 0 {
		return span{most - l.every() + 1, 2 * most}
	}
	return span{most - l.every() + 1, most}
}

// left returns how many whole units a bucket has with this lack.
func (l *Limit) left(lack span) span {
	units := func(lack int64) int64 { return max(0, (l.Capacity*l.every()-lack)/l.every()) }
	return span{units(lack.hi), units(lack.lo)}
}

// admits narrows p to where the bucket has units, takes them, and reports whether that is
// possible. If the remaining units are known, they must equal left.
func (l *Limit) admits(p *pace, units int64, told bool, left int64) bool {
	need := units * l.every()
	if !p.lacks(span{0, l.Capacity*l.every() - need}) {
		return false
	}
	if told {
		want := l.lackOf(left)
		if !p.lacks(span{max(0, want.lo-need), want.hi - need}) {
			return false
		}
	}
	full := span{max(p.full.lo, p.at.lo), max(p.full.hi, p.at.hi)}
	full, ok := full.within(p.at.plus(p.lack))
	taken := span{need, need}
	p.full, p.lack = full.plus(taken), p.lack.plus(taken)
	return ok
}

// refuses narrows p to where the bucket lacks units and has left of them, and reports
// whether that is possible.
func (l *Limit) refuses(p *pace, units, left int64) bool {
	return p.lacks(l.lackOf(left)) && p.lacks(span{(l.Capacity-units)*l.every() + 1, p.lack.hi})
}
