package limit

import "slices"

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

// NeedsDim reports whether l applies only to requests with a dimension besides tenant, op and ip.
func (l *Limit) NeedsDim() bool {
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
