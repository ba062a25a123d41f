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
	// unsentRequests is how many requests that a limit is for lack a dimension or a slot that it needs, and none has it, before
	// that has a line. unsentLimits bounds such limits of a plan, of each kind, and unsentLooked the requests of a plan that are compared with them.
	unsentRequests = 1000
	unsentLimits   = 16
	unsentLooked   = 50_000
	// sampledPlans bounds the plans whose requests are compared with the dimensions that their limits need.
	sampledPlans = 256
)

// planNeeds counts the requests of a plan that lack a dimension besides tenant, op and ip, or a slot, which limits need.
type planNeeds struct {
	decided bool // some limit needs none, a request has met one, enough are compared, or the plan has its line
	lacking int  // requests that met none for want of that
	others  int  // those that met none for another reason

	unsent []unsentNeed    // of the enforced limits that need a dimension or a slot, but for those that are decided
	looked int             // requests that were compared with these, or are lifted
	sent   map[string]bool // the dimensions that these have, of those that unsent uses, and "" for a slot
}

// unsentNeed counts the requests that a limit is for, and that lack the dimension or the slot which it needs.
type unsentNeed struct {
	limit   *limit.Limit
	lacking int
}

// needsOf returns the counts of the plan of a request, or nil if there are too many plans, or other limits than those of
// the plan are for the request. The caller holds mu.
func (s *sampledRequests) needsOf(set *limit.Set, req *limit.Request) *planNeeds {
	if req.Bypass || req.CarriesLimits() || set.Overrides(req.Tenant) {
		return nil
	}
	s.use(set)
	plan := set.Plan(req.Tenant)
	needs := s.needs[plan]
	if needs != nil || len(s.needs) == sampledPlans {
		return needs
	}
	limits := set.TenantLimits(req.Tenant) // it overrides none
	needs = &planNeeds{decided: !allNeedMore(limits), sent: map[string]bool{"": s.slotted[plan]}}
	kept := map[bool]int{} // limits of slots, and others
	for _, l := range limits {
		if l.Mode == limit.ModeEnforce && l.Action != limit.ActionAllow && l.NeedsMore() && kept[l.HoldsSlots()] < unsentLimits {
			kept[l.HoldsSlots()]++
			needs.unsent = append(needs.unsent, unsentNeed{limit: l})
		}
	}
	s.needs[plan] = needs
	return needs
}

// takeSlot notes that a request of a plan takes a slot. The caller holds mu.
func (s *sampledRequests) takeSlot(plan string) {
	if len(s.slotted) >= sampledPlans {
		clear(s.slotted)
	}
	s.slotted[plan] = true
}

// lackingOf returns the limit that requests of a plan do not meet for want of a dimension, or if there is none of a slot, once no
// request of the plan meets any limit, or none. It returns none also if another decision compares at the moment.
func (s *sampledRequests) lackingOf(set *limit.Set, req *limit.Request) (of limit.Unmet) {
	if !s.mu.TryLock() {
		return of
	}
	defer s.mu.Unlock()
	needs := s.needsOf(set, req)
	if needs == nil || needs.decided {
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
	needs.unsent = nil // one line is enough
	return mostMet(unmet)
}

// mostMet returns the limit that requests are nearest to: one that lacks a dimension and has the fewest conditions, or else one of slots.
func mostMet(unmet []limit.Unmet) limit.Unmet {
	return slices.MinFunc(unmet, func(a, b limit.Unmet) int {
		if (a.Dim == "") != (b.Dim == "") {
			return strings.Compare(b.Dim, a.Dim)
		}
		return len(a.Limit.When()) - len(b.Limit.When())
	})
}

// allNeedMore reports whether there are a few limits, and all that are not off need a dimension besides tenant, op and ip,
// or a slot.
func allNeedMore(limits []*limit.Limit) bool {
	isOn := func(l *limit.Limit) bool { return l.Mode != limit.ModeOff }
	return len(limits) <= comparedLimits && slices.ContainsFunc(limits, isOn) &&
		!slices.ContainsFunc(limits, func(l *limit.Limit) bool { return isOn(l) && !l.NeedsMore() })
}

// unsentOf returns the limits that have been for unsentRequests requests of a plan with this one, each with the dimension or the
// slot that it needs and none of them has. It returns none also if another decision compares at the moment.
func (s *sampledRequests) unsentOf(set *limit.Set, req *limit.Request) (unsent []limit.Unmet) {
	if !s.mu.TryLock() {
		return nil
	}
	defer s.mu.Unlock()
	needs := s.needsOf(set, req)
	if needs == nil || len(needs.unsent) == 0 || needs.looked == unsentLooked {
		return nil
	}
	if needs.looked++; set.Lifts(req) { // the search for a limit that does is part of the bound
		return nil
	}
	if req.Hold == limit.HoldSlot && !needs.sent[""] {
		needs.sent[""] = true
		s.takeSlot(set.Plan(req.Tenant))
	}
	for i := range req.Dims {
		name := req.Dims[i].Name
		uses := func(n unsentNeed) bool { return n.limit.UsesDim(name) }
		if !needs.sent[name] && slices.ContainsFunc(needs.unsent, uses) {
			needs.sent[strings.Clone(name)] = true // it may alias a command
		}
	}
	for i := range needs.unsent {
		n := &needs.unsent[i]
		dim := n.limit.Lacks(req)
		// Callers without any dimension of a chain are often meant to be.
		if n.limit.HoldsSlots() && !n.limit.LacksSlot(req) || !n.limit.HoldsSlots() && (dim == "" || strings.Contains(dim, "|")) {
			continue
		}
		if n.lacking++; n.lacking == unsentRequests && !needs.sent[dim] {
			unsent = append(unsent, limit.Unmet{Limit: n.limit, Dim: dim})
		}
	}
	needs.unsent = slices.DeleteFunc(needs.unsent, func(n unsentNeed) bool { return n.lacking == unsentRequests })
	return unsent
}
