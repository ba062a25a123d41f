package limit

import (
	"iter"
	"slices"
)

// Set is a compiled, immutable limits file. It is safe for concurrent use.
type Set struct {
	// Version identifies the content from which the set was compiled.
	Version string
	// File is the name of the limits file, for people.
	File string
	// IDs lists the ids of all limits; Limit.Ordinal indexes it.
	IDs []string
	// Limits lists the limits of the plans and the shared ones, by Limit.Order.
	Limits []*Limit

	tenants     *tenantIndex
	defaultPlan *ruleset // for tenants not listed
	byPlan      map[string]*ruleset
	trial       trial
	inClear     map[string]*Limit          // by dimension: a limit whose buckets have its values in their names, unless the file says that
	declared    map[string]map[string]bool // the values of dimensions that declare some
	dims        []string                   // see Dims
}

// Dims returns the names of the dimensions that limits count by or have conditions on, each once and sorted, without
// tenant, op and ip. The caller must not change it.
func (s *Set) Dims() []string { return s.dims }

// CountsInClear reports whether names of buckets have the values of a dimension as they are sent, and the limits file
// does not say so.
func (s *Set) CountsInClear(dim string) bool { return s.inClear[dim] != nil }

// mostDeclared bounds the values that Declared returns.
const mostDeclared = 10

// Declared returns the values that the limits file declares of a dimension, sorted: the first ten, and an ellipsis if there
// are more.
func (s *Set) Declared(dim string) []string {
	values := keys(s.declared[dim])
	if len(values) > mostDeclared {
		values = append(values[:mostDeclared], "...")
	}
	return values
}

// Undeclared yields the dimensions of a request whose values the limits file does not declare, and "op" if that is
// one of them.
func (s *Set) Undeclared(req *Request) iter.Seq[string] {
	undeclared := func(name, value string) bool { return s.declared[name] != nil && !s.declared[name][value] }
	return func(yield func(string) bool) {
		if req.Op != "" && undeclared("op", req.Op) && !yield("op") {
			return
		}
		for i := range req.Dims {
			if d := &req.Dims[i]; undeclared(d.Name, d.Value) && !yield(d.Name) {
				return
			}
		}
	}
}

// ruleset is the limits that apply to one tenant: the limits of its plan, its overrides
// and the shared limits, by group.
type ruleset struct {
	plan   string
	groups []group
	// allowing are the limits that allow at every level, which compete with none.
	allowing []*Limit
	off      []*Limit // of mode off, for Explain
}

// group holds the limits of one level that compete, the most specific first.
type group struct {
	candidates []*Limit
	slots      bool // they count slots, and apply only to requests that hold slots
	bans       bool // some of them deny, or replace limits, which may be ones that deny
}

func (s *Set) rules(tenant string) *ruleset {
	if s.trial.set != nil && InTrial(tenant, s.trial.share) {
		s = s.trial.set
	}
	if r := s.tenants.get(tenant); r != nil {
		return r
	}
	return s.defaultPlan
}

// Plan returns the name of the tenant's plan; it is empty for a tenant that
// has only the shared limits.
func (s *Set) Plan(tenant string) string { return s.rules(tenant).plan }

// TenantLimits returns the limits that may apply to a tenant, by Limit.Order.
func (s *Set) TenantLimits(tenant string) []*Limit {
	out := s.rules(tenant).limits()
	sortByOrder(out)
	return out
}

// HoldsSlots reports whether a limit on concurrency may apply to a tenant.
func (s *Set) HoldsSlots(tenant string) bool {
	r := s.rules(tenant)
	return slices.ContainsFunc(r.groups, func(g group) bool { return g.slots })
}

// CountsTenant reports whether any limit may have a bucket for the tenant alone.
func (s *Set) CountsTenant(tenant string) bool {
	r := s.rules(tenant)
	for i := range r.groups {
		if slices.ContainsFunc(r.groups[i].candidates, keepsOwn) {
			return true
		}
	}
	return slices.ContainsFunc(r.off, keepsOwn)
}

func keepsOwn(l *Limit) bool { return l.byTenant && l.Action == ActionLimit }

// Overrides reports whether a tenant overrides limits of its plan, or is on trial.
func (s *Set) Overrides(tenant string) bool {
	r := s.rules(tenant)
	return r != s.defaultPlan && r != s.byPlan[r.plan]
}

// Lifts reports whether a limit allows a request at every level.
func (s *Set) Lifts(req *Request) bool { return s.rules(req.Tenant).lifting(req) != nil }

// Plans returns the number of plans.
func (s *Set) Plans() int { return len(s.byPlan) }

// Lists reports whether a tenant is listed, by the limits that decide for it.
func (s *Set) Lists(tenant string) bool {
	if s.Tries(tenant) {
		s = s.trial.set
	}
	return s.tenants.get(tenant) != nil
}

// Tenants returns the number of tenants listed.
func (s *Set) Tenants() int { return s.tenants.len }

// All returns every limit by Limit.Order, overrides included.
func (s *Set) All() []*Limit {
	all := slices.Clone(s.Limits)
	for tenant, r := range s.tenants.all() {
		for _, l := range r.limits() {
			if l.Tenant == tenant {
				all = append(all, l)
			}
		}
	}
	sortByOrder(all)
	return all
}

// Raised returns how many limits are RoundedUp, overrides included.
func (s *Set) Raised() (n int) {
	count := func(limits []*Limit, tenant string) {
		for _, l := range limits {
			if l.RoundedUp && l.Tenant == tenant && !l.isShadowSide() {
				n++
			}
		}
	}
	count(s.Limits, "")
	for tenant, r := range s.tenants.all() {
		for i := range r.groups {
			count(r.groups[i].candidates, tenant)
		}
		count(r.off, tenant)
	}
	return n
}

// limits returns all limits of a ruleset, in no order.
func (r *ruleset) limits() []*Limit {
	var all []*Limit
	for _, g := range r.groups {
		for _, l := range g.candidates {
			if !l.isShadowSide() {
				all = append(all, l)
			}
		}
	}
	return append(append(all, r.allowing...), r.off...)
}

// LimitByID returns the first limit by Limit.Order that has the id, or nil.
func (s *Set) LimitByID(id string) *Limit {
	for _, l := range s.Limits {
		if l.ID == id {
			return l
		}
	}
	if s.trial.set != nil {
		return s.trial.set.LimitByID(id)
	}
	return nil
}
