package linear

import "slices"

// model is the sequential specification: the possible answers and effects of each call.
type model struct {
	plan    Plan
	horizon int64
	begin   int64
	// budget is the maximum number of acknowledged changes that a failover may lose.
	budget int
	// forgets means that the store may have no record of a check.
	forgets bool
	tracks  bool // there is a failover, and a budget
	paced   bool // some limit is Paced: otherwise the time of a decision makes no difference
	ids     map[string]idUse
}

// idUse is how many calls have an ID, and until when one of them can have its effect.
type idUse struct {
	calls int
	until int64
}

// model returns the model of a history with an excuse.
func (h *History) model(begin, horizon int64, x excuse) *model {
	ids := map[string]idUse{}
	for i := range h.Operations {
		o := &h.Operations[i]
		use := ids[o.ID]
		ids[o.ID] = idUse{use.calls + 1, max(use.until, o.ends(horizon))}
	}
	return &model{
		ids:  ids,
		plan: h.Plan, begin: begin, horizon: horizon, budget: x.lost, forgets: x.forgot, tracks: x.lost > 0 && h.has(Failover),
		paced: slices.ContainsFunc(h.Plan, func(l Limit) bool { return l.Rule == Paced }),
	}
}

// first returns the state in which every bucket is full.
func (m *model) first() *state {
	s := &state{}
	for i := range m.plan {
		s.full[i] = span{m.begin, m.begin}
	}
	return s
}

// decided records the earliest time of a decision.
func (m *model) decided(b *buckets, at int64) {
	if m.paced {
		b.since = max(b.since, at)
	}
}

// step returns the states to which an operation may lead from s; none if its answer is
// impossible there.
func (m *model) step(s *state, o *Operation) []*state {
	var next []*state
	s = m.outlived(s, o.Sent)
	switch {
	case o.Kind == Emptied:
		empty := m.first()
		empty.since, empty.settledDown = s.since, true
		return []*state{empty}
	case o.Kind == Failover:
		return m.failOver(s)
	case o.Kind == SetBack:
		b := s.buckets
		b.setBack = true
		return []*state{s.with(b, nil)}
	case o.Kind.settles():
		next = m.settle(s, o)
	default:
		next = m.decide(s, o)
	}
	for _, n := range next {
		if m.tracks && !s.settledDown && n != s {
			n.before, n.acknowledged = s, o.acknowledged()
		}
	}
	if !o.Known {
		next = append(next, s)
	}
	return next
}

// outlived returns the state without the records that no call at this time or later can
// use: without them, more states are equal.
func (m *model) outlived(s *state, at int64) *state {
	gone := func(r record) bool { return m.ids[r.id].until < at }
	if !slices.ContainsFunc(s.records, gone) {
		return s
	}
	next := *s
	next.records = slices.DeleteFunc(slices.Clone(s.records), gone)
	return &next
}

// failOver returns s and the states before it, as far back as the budget of lost
// acknowledged changes allows.
func (m *model) failOver(s *state) (next []*state) {
	lost := 0
	for was := s; was != nil; was = was.before {
		b := was.buckets
		b.since = s.since
		after := was.with(b, nil)
		after.settledDown = true
		next = append(next, after)
		if was.acknowledged {
			lost++
		}
		if lost > m.budget {
			break
		}
	}
	return next
}

// at returns when an operation can be decided.
func (m *model) at(s *state, o *Operation) span {
	return span{max(o.Sent, s.since), o.ends(m.horizon)}
}

// pace returns the known state of a Paced bucket when it is used. After the clock stepped
// back it is known only that the bucket gained no unit, and that its debt is at most its
// capacity.
func (m *model) pace(b *buckets, i int, at span) pace {
	l, full := &m.plan[i], b.full[i]
	if b.setBack {
		full.hi = max(full.hi, at.hi+2*l.Capacity*l.every())
	}
	return l.pace(full, at)
}

// decide returns the states after a call that is granted or denied. For a call without an
// answer it leaves out the state in which the call changes nothing.
func (m *model) decide(s *state, o *Operation) (next []*state) {
	keeps := o.ID != "" && !o.Unrecorded && m.ids[o.ID].calls > 1
	forgets := o.Unrecorded || m.forgets && o.ID != "" && (o.Kind == Check || o.Kind == Reserve && !o.Known)
	if i, found := s.find(o.ID, o.Kind); o.ID != "" && found && s.records[i].status != cancelled {
		if again := m.repeat(s, o, i); again != nil {
			next = append(next, again)
		}
		if s.records[i].status == open && !forgets {
			return next
		}
	}
	if o.Allowed || !o.Known {
		if granted := m.grant(s, o, keeps); granted != nil {
			next = append(next, granted)
		}
		if keeps && forgets {
			if granted := m.grant(s, o, false); granted != nil {
				next = append(next, granted)
			}
		}
	}
	if o.Known && !o.Allowed {
		if denied := m.deny(s, o); denied != nil {
			next = append(next, denied)
		}
	}
	return next
}

// repeat returns s if the answer is that of record i.
func (m *model) repeat(s *state, o *Operation, i int) *state {
	if o.Known && (!o.Allowed || !m.binds(o, &s.records[i].left)) {
		return nil
	}
	return s
}

// grant returns the state after a call has taken its units, nil if it cannot have taken
// them, or not with this answer.
func (m *model) grant(s *state, o *Operation, keeps bool) *state {
	b, r := s.buckets, record{id: o.ID, kind: o.Kind}
	at := m.at(s, o)
	for i := range m.plan {
		l := &m.plan[i]
		if !m.plan.applies(i, &o.Call) {
			continue
		}
		units := o.cost()
		r.charged[i] = units
		if l.Rule != Paced {
			b.used[i] += units
			if b.used[i] > l.Capacity {
				return nil
			}
			r.left[i] = span{l.Capacity - b.used[i], l.Capacity - b.used[i]}
			continue
		}
		p := m.pace(&b, i, at)
		if at.lo > at.hi || !l.admits(&p, units, o.Known && o.Limit == l.ID, o.Left) {
			return nil
		}
		b.full[i], b.setBack, at, r.left[i] = p.full, false, p.at, l.left(p.lack)
	}
	m.decided(&b, at.lo)
	if o.Known && !m.binds(o, &r.left) {
		return nil
	}
	if o.Kind == Peek {
		peeked := s.buckets
		m.decided(&peeked, at.lo)
		return s.changed(peeked)
	}
	if !keeps {
		return s.with(b, nil)
	}
	return s.with(b, &r)
}

// cost returns the units that each limit is charged for a call.
func (c *Call) cost() int64 {
	if c.Kind == Acquire {
		return 1
	}
	return c.Units
}

// binds reports whether the limit that an answer names has the least left in proportion
// to its capacity, the first of equal ones, and as much left as in the answer.
func (m *model) binds(o *Operation, left *[maxLimits]span) bool {
	named := m.plan.index(o.Limit)
	if named < 0 || !m.plan.applies(named, &o.Call) || o.Left < left[named].lo || o.Left > left[named].hi {
		return false
	}
	for i := range m.plan {
		if i == named || !m.plan.applies(i, &o.Call) {
			continue
		}
		mine, theirs := o.Left*m.plan[i].Capacity, left[i].hi*m.plan[named].Capacity
		if mine > theirs || mine == theirs && i < named {
			return false
		}
	}
	return true
}

// deny returns the state after a call was denied by the limit that its answer names, nil
// if that limit admits it.
func (m *model) deny(s *state, o *Operation) *state {
	i := m.plan.index(o.Limit)
	if i < 0 || !m.plan.applies(i, &o.Call) {
		return nil
	}
	l, b := &m.plan[i], s.buckets
	if l.Rule != Paced {
		if b.used[i]+o.cost() <= l.Capacity || o.Left != max(0, l.Capacity-b.used[i]) {
			return nil
		}
		m.decided(&b, o.Sent)
		return s.changed(b)
	}
	at := m.at(s, o)
	p := m.pace(&b, i, at)
	if at.lo > at.hi || !l.refuses(&p, o.cost(), o.Left) {
		return nil
	}
	if o.Kind != Peek {
		b.full[i], b.setBack = p.full, false
	}
	m.decided(&b, p.at.lo)
	return s.changed(b)
}

// settle returns the state after a settlement. For a call without an answer it leaves out
// the state in which nothing was settled.
func (m *model) settle(s *state, o *Operation) []*state {
	of := Reserve
	if o.Kind == Release {
		of = Acquire
	}
	i, found := s.find(o.ID, of)
	is := found && s.records[i].status == open
	switch {
	case !found || o.Known && is != (o.Outcome == 1):
		return nil
	case !is && o.Known:
		return []*state{s}
	case !is:
		return nil
	}
	r, b := s.records[i], s.buckets
	at := m.at(s, o)
	for j := range m.plan {
		m.give(&b, j, r.charged[j]-used(o, &m.plan[j], r.charged[j]), at)
	}
	r.status = cancelled
	if o.Kind == Commit {
		r.status = settled
	}
	m.decided(&b, at.lo)
	return []*state{s.with(b, &r)}
}

// used returns how much of the units charged to a limit remains charged after a
// settlement.
func used(o *Operation, l *Limit, charged int64) int64 {
	switch {
	case charged == 0 || o.Kind == Cancel || o.Kind == Release && l.Rule == Slots:
		return 0
	case o.Kind == Commit:
		return o.Units
	default:
		return charged
	}
}

// give returns units to a limit; a negative number takes them, up to the limit's maximum
// debt.
func (m *model) give(b *buckets, i int, units int64, at span) {
	l := &m.plan[i]
	switch {
	case l.Rule != Paced:
		b.used[i] = max(0, b.used[i]-units)
		if units < 0 {
			b.used[i] = min(b.used[i], 2*l.Capacity)
		}
	case units > 0:
		back := units * l.every()
		b.full[i] = span{b.full[i].lo - back, b.full[i].hi - back}
	case units < 0:
		owed := -units * l.every()
		b.full[i] = span{max(b.full[i].lo, at.lo) + owed, max(b.full[i].hi, at.hi) + owed}
	}
}

// changed returns the state with other buckets, or s itself if they are equal.
func (s *state) changed(b buckets) *state {
	if b == s.buckets {
		return s
	}
	return s.with(b, nil)
}

// unique returns the states without duplicates.
func unique(all []*state, budget int) []*state {
	var kept []*state
	for _, s := range all {
		if !slices.ContainsFunc(kept, func(k *state) bool { return same(k, s, budget) }) {
			kept = append(kept, s)
		}
	}
	return kept
}
