package proxy

import (
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

const (
	// lackingRequests is how many requests of a plan meet no limit, and none of it meets one, before that has a line.
	lackingRequests = 100
	// comparedRequests and comparedLimits bound the requests of a plan that are compared with its limits, and the limits
	// of a plan whose requests are: each comparison is part of a decision.
	comparedRequests = 1000
	comparedLimits   = 64
	// sampledPlans bounds the plans whose requests are compared with the dimensions that their limits need.
	sampledPlans = 256
)

// planNeeds counts the requests of a plan whose limits all need a dimension besides tenant, op and ip, or a slot.
type planNeeds struct {
	decided bool // some limit needs none, a request has met one, enough are compared, or the plan has its line
	lacking int  // requests that met none for want of that
	others  int  // those that met none for another reason
}

// lackingOf returns the limit that requests of a plan do not meet for want of a dimension or a slot, once no request of
// the plan meets any limit, or none. It returns none also if another decision compares at the moment.
func (s *sampledRequests) lackingOf(set *limit.Set, req *limit.Request) (of limit.Unmet) {
	if !s.mu.TryLock() {
		return of
	}
	defer s.mu.Unlock()
	s.use(set)
	plan := set.Plan(req.Tenant)
	needs := s.needs[plan]
	if needs == nil {
		if len(s.needs) == sampledPlans {
			return of
		}
		needs = &planNeeds{decided: !allNeedMore(set.TenantLimits(req.Tenant))}
		s.needs[strings.Clone(plan)] = needs
	}
	if needs.decided {
		return of
	}
	unmet, met := set.Unmet(req)
	if len(unmet) > 0 {
		needs.lacking++
	} else {
		needs.others++
	}
	needs.decided = met || needs.lacking == lackingRequests || needs.others == comparedRequests
	if needs.lacking < lackingRequests {
		return of
	}
	return unmet[0]
}

// allNeedMore reports whether there are a few limits, and all that are not off need a dimension besides tenant, op and ip,
// or a slot.
func allNeedMore(limits []*limit.Limit) bool {
	isOn := func(l *limit.Limit) bool { return l.Mode != limit.ModeOff }
	return len(limits) <= comparedLimits && slices.ContainsFunc(limits, isOn) &&
		!slices.ContainsFunc(limits, func(l *limit.Limit) bool { return isOn(l) && !l.NeedsMore() })
}
