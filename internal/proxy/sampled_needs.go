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
	// unsentRequests is of how many requests none has a dimension before that has a line, and unsentLimits bounds the
	// limits that may need it.
	unsentRequests = 1000
	unsentLimits   = 1024
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

// unsentDims returns, at the last of unsentRequests requests, the dimensions that enforced limits need and none of them
// has, each with such a limit. It returns none also if another decision compares at the moment.
func (s *sampledRequests) unsentDims(set *limit.Set, req *limit.Request) (unsent []limit.Unmet) {
	if !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	s.use(set)
	used := set.Dims()[:min(len(set.Dims()), sampledUsed)]
	if s.seen == unsentRequests || len(used) == 0 {
		return nil
	}
	for i := range req.Dims {
		if at, found := slices.BinarySearch(used, req.Dims[i].Name); found {
			s.sent[used[at]] = true
		}
	}
	if s.seen++; s.seen < unsentRequests {
		return nil
	}
	for _, name := range used {
		needs := func(l *limit.Limit) bool { return l.Mode == limit.ModeEnforce && l.NeedsDim(name) }
		limits := set.Limits[:min(len(set.Limits), unsentLimits)]
		if at := slices.IndexFunc(limits, needs); at >= 0 && !s.sent[name] {
			unsent = append(unsent, limit.Unmet{Limit: limits[at], Dim: name})
		}
	}
	return unsent
}
