package proxy

import (
	"cmp"
	"strings"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// unmetSlots is how many requests of a plan that are looked at acquire slots, and none meets a limit of them, before that has a line.
const unmetSlots = 100

// planSlots counts the requests of a plan that acquire slots.
type planSlots struct {
	met   bool // a request has met a limit of slots, or these are too many to compare
	unmet int  // those that met none before that
}

// lookAtSlot logs that a request acquires a slot, and no limit bounds how many are held. Secrets may be in its op.
func (s *sampledRequests) lookAtSlot(set *limit.Set, req *limit.Request) {
	if !set.HoldsSlots(req.Tenant) {
		if (set.Lists(req.Tenant) || !s.partial) && s.unheld.Allow() {
			s.log.Warn(unheldLine, "tenant", req.Tenant, "plan", cmp.Or(set.Plan(req.Tenant), "none"))
		}
		return
	}
	of, near := s.unmetSlotOf(set, req)
	switch {
	case near && s.mayLog(&s.nearSlot, of.ID):
		s.log.Warn(nearSlotLine, "limit", of.ID, "plan", cmp.Or(of.Plan, "none"), "condition", of.OpUse().Pattern)
	case of != nil && !near && s.unmetSlot.Allow():
		s.log.Warn(unmetSlotLine, "limit", of.ID, "plan", cmp.Or(set.Plan(req.Tenant), "none"), "requests", unmetSlots)
	}
}

// unmetSlotOf returns the limit of slots whose op is nearly that of a request which no such limit is for, or the first if no request of
// the plan has met one. It returns none also if another decision compares at the moment.
func (s *sampledRequests) unmetSlotOf(set *limit.Set, req *limit.Request) (of *limit.Limit, near bool) {
	if req.Bypass || req.CarriesLimits() || !s.mu.TryLock() {
		return nil, false
	}
	defer s.mu.Unlock()
	s.use(set)
	plan := set.Plan(req.Tenant)
	count := s.slots[plan]
	switch {
	case count == nil && len(s.slots) == sampledPlans:
		return nil, false
	case count == nil:
		count = new(planSlots)
		s.slots[plan] = count
	}
	if !takeLook(s.slotLooks, plan, time.Now()) {
		return nil, false
	}
	limits, met := set.SlotLimits(req)
	if met || len(limits) == 0 || len(limits) > unsentLimits {
		count.met = true
		return nil, false
	}
	for _, l := range limits {
		op := strings.TrimSuffix(l.OpUse().Pattern, "*")
		if op != "" && !l.OpUse().Holds(req.Op) && isSlipOfOp(req.Op, op) {
			return l, true
		}
	}
	if count.unmet++; count.unmet == unmetSlots && !count.met {
		return limits[0], false
	}
	return nil, false
}

// isSlipOfOp reports whether an op is most likely a misspelling of another one. Those of two methods are two.
func isSlipOfOp(op, meant string) bool {
	method, _, _ := strings.Cut(op, " ")
	other, _, _ := strings.Cut(meant, " ")
	if method != other && limit.IsMethod(method) && limit.IsMethod(other) {
		return false
	}
	return limit.IsSlip(op, meant)
}
