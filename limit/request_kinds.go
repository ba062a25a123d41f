package limit

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
)

// RequestKind is a kind of request, and the buckets that a request of it charges.
type RequestKind struct {
	// Plan is the plan of the tenant, and When the conditions that the request meets.
	Plan, When string
	// Fields and Keys are the buckets in the tenant's hash slot, one call together: those in
	// the tenant's string, and those with a key of their own.
	Fields, Keys int
	// Elsewhere are the buckets in hash slots of their own, a call each, and Local those in
	// the instance.
	Elsewhere, Local int
}

// PlanKeys is what the limits of a plan keep in the store: the buckets in the string of a
// tenant, the limits with one key of their own for a tenant, and those with a key for each value
// of their dimensions.
type PlanKeys struct{ Fields, Single, ByValue int }

// RequestKinds returns the kinds of requests of tenants of each plan, without overrides: one for
// requests that have every dimension and meet no condition, and one for each limit whose
// conditions make other buckets. Requests for slots are left out.
func (s *Set) RequestKinds() []RequestKind {
	var kinds []RequestKind
	for _, r := range s.rulesets() {
		kinds = append(kinds, r.requestKinds()...)
	}
	return kinds
}

// PlanKeys returns what the limits of a plan keep in the store. Plan is that of a RequestKind.
func (s *Set) PlanKeys(plan string) (k PlanKeys) {
	for _, r := range s.rulesets() {
		if r.plan != plan {
			continue
		}
		for _, l := range r.limits() {
			switch {
			case l.Action != ActionLimit || l.Mode == ModeOff || l.Store == PlacementLocal:
			case l.field:
				k.Fields += l.fieldCount()
			case len(l.by) > 0:
				k.ByValue++
			case l.byTenant:
				k.Single++
			}
		}
	}
	return k
}

// rulesets returns the ruleset of tenants that are not listed, and those of the other plans.
func (s *Set) rulesets() []*ruleset {
	all := []*ruleset{s.defaultPlan}
	for _, name := range slices.Sorted(maps.Keys(s.byPlan)) {
		if name != s.defaultPlan.plan {
			all = append(all, s.byPlan[name])
		}
	}
	return all
}

// requestKinds returns the kinds of requests of tenants with the ruleset.
func (r *ruleset) requestKinds() []RequestKind {
	plain := r.kind(nil)
	kinds := []RequestKind{plain}
	seen := map[RequestKind]bool{plain: true}
	for _, l := range r.limits() {
		if len(l.when) == 0 || l.slots {
			continue
		}
		k := r.kind(l)
		if seen[k] {
			continue
		}
		seen[k] = true
		k.When = strings.Join(l.When(), ", ")
		kinds = append(kinds, k)
	}
	return kinds
}

// kind returns the kind of a request that meets the conditions of a limit, unless it is nil.
func (r *ruleset) kind(met *Limit) RequestKind {
	req := r.sample(met)
	var b Buffer
	b.choose(r, req)
	k := RequestKind{Plan: r.plan}
	for _, l := range b.chosen {
		switch {
		case l.Action == ActionDeny && l.Mode == ModeEnforce || l.Missing == MissingDeny && l.missing(req) != nil:
			return RequestKind{Plan: r.plan}
		case l.Action != ActionLimit:
		case l.place() == inInstance:
			k.Local++
		case l.place() == inOtherSlot:
			k.Elsewhere++
		case l.field:
			k.Fields++
		default:
			k.Keys++
		}
	}
	return k
}

// sample returns a request that has every dimension of the ruleset, and meets the conditions of
// a limit unless it is nil.
func (r *ruleset) sample(met *Limit) *Request {
	req := &Request{Tenant: "tenant", Op: "-", Addr: netip.AddrFrom4([4]byte{203, 0, 113, 7}), Cost: 1}
	if met != nil {
		for i := range met.when {
			met.when[i].satisfy(req)
		}
	}
	for _, l := range r.limits() {
		for _, d := range l.by {
			for i := range d.choices {
				d.choices[i].satisfy(req, met)
			}
		}
	}
	return req
}

// satisfy makes a request meet the condition.
func (c *condition) satisfy(req *Request) {
	switch c.kind {
	case propertyTenant:
		req.Tenant = c.prefix
	case propertyOp:
		req.Op = c.prefix
	case propertyIP:
		req.Addr = c.net.Addr()
	default:
		req.Dims = append(req.Dims, Dim{Name: c.name, Value: c.prefix})
	}
}

// satisfy makes a request have the property, unless it has it or a condition of met sets it.
func (p *property) satisfy(req *Request, met *Limit) {
	if _, ok := p.value(req); ok {
		return
	}
	value := "-"
	if len(p.values) > 0 {
		value = slices.Min(slices.Collect(maps.Keys(p.values)))
	}
	switch set := met != nil && slices.ContainsFunc(met.when, func(c condition) bool { return c.name == p.name }); {
	case set:
	case p.kind == propertyOp:
		req.Op = value
	case p.kind == propertyExtra:
		req.Dims = append(req.Dims, Dim{Name: p.name, Value: value})
	}
}
