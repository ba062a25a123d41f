package proxy

import (
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

const (
	// lackingRequests is how many requests of a plan meet no limit, and none of it meets one, before that has a line.
	lackingRequests = 100
	// sampledPlans bounds the plans whose requests are compared with the dimensions that their limits need.
	sampledPlans = 256
)

// planNeeds counts the requests of a plan whose limits all need a dimension besides tenant, op and ip.
type planNeeds struct {
	decided bool // some limit needs none, a request has met one, or the plan has its line
	lacking int  // requests that met none
}

// lackingDim returns the dimension that a limit needs and a request lacks, once no request of the plan meets any limit,
// or "". It returns "" also if another decision compares at the moment.
func (s *sampledRequests) lackingDim(set *limit.Set, req *limit.Request) (dim string, of *limit.Limit) {
	if !s.mu.TryLock() {
		return "", nil
	}
	defer s.mu.Unlock()
	s.use(set)
	plan := set.Plan(req.Tenant)
	needs := s.needs[plan]
	if needs == nil {
		if len(s.needs) == sampledPlans {
			return "", nil
		}
		needs = &planNeeds{decided: !allNeedDim(set.TenantLimits(req.Tenant))}
		s.needs[strings.Clone(plan)] = needs
	}
	if needs.decided {
		return "", nil
	}
	for _, c := range set.Explain(req) {
		if c.Applies {
			needs.decided = true
			return "", nil
		}
		if lacks := c.Limit.Lacks(req); dim == "" && lacks != "" {
			dim, of = lacks, c.Limit
		}
	}
	if dim == "" {
		return "", nil
	}
	if needs.lacking++; needs.lacking < lackingRequests {
		return "", nil
	}
	needs.decided = true
	return dim, of
}

// allNeedDim reports whether there are limits, and all that are not off need a dimension besides tenant, op and ip.
func allNeedDim(limits []*limit.Limit) bool {
	isOn := func(l *limit.Limit) bool { return l.Mode != limit.ModeOff }
	return slices.ContainsFunc(limits, isOn) && !slices.ContainsFunc(limits, func(l *limit.Limit) bool { return isOn(l) && !l.NeedsDim() })
}
