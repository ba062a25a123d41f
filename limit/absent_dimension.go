package limit

import "slices"

// Unmet is a limit that does not apply to a request, and would but for one thing.
type Unmet struct {
	Limit *Limit
	// Dim is the dimension, or the chain of dimensions, that the request lacks; "" if Limit counts slots, which only
	// requests that hold one take.
	Dim string
}

// Unmet returns the limits that would apply to a request if it had a dimension, or held a slot. Met reports that some limit
// of the tenant applies, and there are none then. Limits of mode off and those with action: allow are left out.
func (s *Set) Unmet(req *Request) (unmet []Unmet, met bool) {
	rules := s.rules(req.Tenant)
	if rules.lifting(req) != nil {
		return nil, true
	}
	for i := range rules.groups {
		g := &rules.groups[i]
		for _, l := range g.candidates {
			dim := ""
			switch applies := l.applies(req); {
			case applies && (!g.slots || req.Hold == HoldSlot):
				return nil, true
			case l.Action == ActionAllow:
				continue
			case !applies:
				if dim = l.Lacks(req); dim == "" || g.slots && req.Hold != HoldSlot {
					continue
				}
			}
			unmet = append(unmet, Unmet{l, dim})
		}
	}
	return unmet, false
}

// SlotLimits returns the limits that count slots of a tenant, but for those of mode off. Met reports that one of them applies to a request
// that holds a slot, or that it is exempt from all.
func (s *Set) SlotLimits(req *Request) (limits []*Limit, met bool) {
	rules := s.rules(req.Tenant)
	if rules.lifting(req) != nil {
		return nil, true
	}
	for i := range rules.groups {
		g := &rules.groups[i]
		for _, l := range g.candidates {
			switch {
			case !g.slots || l.Mode == ModeOff:
			case l.applies(req):
				return nil, true
			case l.slots:
				limits = append(limits, l)
			}
		}
	}
	return limits, false
}

// Lacks returns the dimension, or the chain of dimensions, for want of which l does not apply to a request that meets
// all its other conditions, or "".
func (l *Limit) Lacks(req *Request) (dim string) {
	for i := range l.when {
		c := &l.when[i]
		switch {
		case c.holds(req):
		case c.absent(req):
			dim = c.name
		default:
			return ""
		}
	}
	d := l.missing(req)
	if d == nil || l.Missing != MissingPass {
		return dim
	}
	if slices.ContainsFunc(d.choices, func(p property) bool { return !p.absent(req) }) { // its value is not declared
		return ""
	}
	return d.text
}

// LacksAll returns every dimension, or chain of dimensions, for want of which l does not apply to a request. It leaves out a chain with a
// dimension that it returns. It is for limits of which Lacks returns one.
func (l *Limit) LacksAll(req *Request) (dims []string) {
	for i := range l.when {
		if c := &l.when[i]; c.absent(req) && !slices.Contains(dims, c.name) {
			dims = append(dims, c.name)
		}
	}
	for i := range l.by {
		d := &l.by[i]
		isThere := func(p property) bool { return !p.absent(req) || slices.Contains(dims, p.name) }
		if l.Missing == MissingPass && !slices.ContainsFunc(d.choices, isThere) {
			dims = append(dims, d.text)
		}
	}
	return dims
}

// LacksSlot reports whether l counts slots, and would apply to a request if that held one.
func (l *Limit) LacksSlot(req *Request) bool {
	return l.slots && req.Hold != HoldSlot && l.applies(req)
}

// absent reports whether a request has no value of the property, declared or not.
func (p *property) absent(req *Request) bool {
	switch p.kind {
	case propertyTenant:
		return req.Tenant == ""
	case propertyIP:
		return !req.Addr.IsValid()
	}
	return p.sent(req) == ""
}

// NeedsMore reports whether l applies only to requests with a dimension besides tenant, op and ip, or that hold a slot.
func (l *Limit) NeedsMore() bool {
	if l.slots {
		return true
	}
	isExtra := func(p property) bool { return p.kind == propertyExtra }
	return slices.ContainsFunc(l.when, func(c condition) bool { return isExtra(c.property) }) ||
		l.Missing == MissingPass && slices.ContainsFunc(l.by, func(d dimension) bool {
			return !slices.ContainsFunc(d.choices, func(p property) bool { return !isExtra(p) })
		})
}

// UsesDim reports whether l counts by a dimension, or has a condition on it.
func (l *Limit) UsesDim(name string) bool {
	return slices.ContainsFunc(l.when, func(c condition) bool { return c.name == name }) ||
		l.countsSome(func(p *property) bool { return p.name == name })
}
