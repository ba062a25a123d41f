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
	// unsentRequests is of how many requests of a plan none has a dimension before that has a line, unsentLimits bounds the
	// limits that may need it, and unsentLooked the requests of all plans that are looked at.
	unsentRequests = 1000
	unsentLimits   = 1024
	unsentLooked   = 100_000
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
	if len(unmet) > 0 && needs.lacking == lackingRequests {
		s.sent[unmet[0].Dim] = true // one line is enough
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

// unsentDims returns, at the last of unsentRequests requests of a plan, the dimensions that its enforced limits need and no
// request has, each with such a limit; for shared limits the requests of all plans count. It returns none also if another
// decision compares at the moment.
func (s *sampledRequests) unsentDims(set *limit.Set, req *limit.Request) (unsent []limit.Unmet) {
	if !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	s.use(set)
	used := set.Dims()[:min(len(set.Dims()), sampledUsed)]
	if s.looked == unsentLooked || len(used) == 0 {
		return nil
	}
	s.looked++
	for i := range req.Dims {
		if at, found := slices.BinarySearch(used, req.Dims[i].Name); found {
			s.sent[used[at]] = true
		}
	}
	unsent = s.unsentOf(set, "", used)
	if plan := set.Plan(req.Tenant); plan != "" {
		unsent = append(unsent, s.unsentOf(set, plan, used)...)
	}
	return unsent
}

// unsentOf counts a request of a plan, "" for the shared limits, and returns the dimensions of unsentDims that its limits
// need. The caller holds mu.
func (s *sampledRequests) unsentOf(set *limit.Set, plan string, used []string) (unsent []limit.Unmet) {
	n := s.seen[plan]
	if n == unsentRequests || n == 0 && len(s.seen) == sampledPlans {
		return nil
	}
	s.seen[plan] = n + 1
	if n+1 < unsentRequests {
		return nil
	}
	for _, name := range used {
		needs := func(l *limit.Limit) bool {
			return l.Plan == plan && l.Mode == limit.ModeEnforce && l.NeedsDim(name)
		}
		limits := set.Limits[:min(len(set.Limits), unsentLimits)]
		if at := slices.IndexFunc(limits, needs); at >= 0 && !s.sent[name] {
			s.sent[name] = true // one line is enough
			unsent = append(unsent, limit.Unmet{Limit: limits[at], Dim: name})
		}
	}
	return unsent
}
