package proxy

import (
	"cmp"
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// comparedValues bounds the limits with conditions on dimensions of a plan whose requests are compared with them.
	comparedValues = 32
	// comparedValueBytes bounds the values that are compared.
	comparedValueBytes = 128
)

// lookAtValues logs the dimensions of a request whose values are other spellings of those of conditions. Secrets may be in the
// values, and in conditions.
func (s *sampledRequests) lookAtValues(set *limit.Set, req *limit.Request) {
	isLong := func(d limit.Dim) bool { return len(d.Value) > comparedValueBytes }
	if len(req.Dims) == 0 || slices.ContainsFunc(req.Dims, isLong) {
		return
	}
	limits := s.valuesOf(set, req)
	if len(limits) == 0 {
		return
	}
	for _, v := range limit.ValueSpellings(req, limits) {
		if s.mayLog(&s.value, v.Dim+" of "+v.Limit.ID) {
			s.log.Warn(valueLine, "dimension", v.Dim, "limit", v.Limit.ID, "plan", cmp.Or(v.Limit.Plan, "none"), "reason", v.Reason)
		}
	}
}

// valuesOf returns the limits of the plan of a request that have conditions on dimensions, or none if there are too many, if enough
// requests were compared, or also if another decision compares at the moment.
func (s *sampledRequests) valuesOf(set *limit.Set, req *limit.Request) []*limit.Limit {
	if req.Bypass || req.CarriesLimits() || set.Overrides(req.Tenant) || !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	s.use(set)
	plan := set.Plan(req.Tenant)
	limits, known := s.valued[plan]
	if !known && len(s.valued) < sampledPlans {
		limits = slices.DeleteFunc(set.TenantLimits(req.Tenant), func(l *limit.Limit) bool { return !l.HasValues() })
		if len(limits) > comparedValues {
			limits = nil
		}
		s.valued[plan] = limits
	}
	if len(limits) == 0 || !takeLook(s.valueLooks, plan, time.Now()) {
		return nil
	}
	return limits
}
