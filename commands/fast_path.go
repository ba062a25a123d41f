package commands

import "net/netip"

// BeginFast begins a run of commands for Fast, and returns false if it would answer none.
func (s *Session) BeginFast() bool {
	if s.tx != nil || s.replyMode != replyOn || !s.h.opts.Limiter.HasFastPath() {
		return false
	}
	s.takeScratch()
	s.h.opts.Limiter.BeginFast(&s.fast.path)
	return true
}

// Fast answers a check without options whose decision takes one step. It returns false, without
// effect, for any other command.
func (s *Session) Fast(args [][]byte, out []byte) (reply []byte, ok bool) {
	if len(args) < 4 || len(args) > 5 || !isName(args[0], checkName) || s.permit(s.h.decisionCommands[dialectCheck], args) != "" {
		return out, false
	}
	req := &s.fast.request
	req.Op, req.Addr, req.Cost = "", netip.Addr{}, 1
	if len(args) == 5 {
		if req.Cost, ok = parseCost(args[4]); !ok {
			return out, false
		}
	}
	if s.parseSubject(args, req) != "" || !s.fast.path.Decide(req) {
		return out, false
	}
	s.out.buf = out
	s.decision(&s.fast.path.Decision, 7)
	out, s.out.buf = s.out.buf, nil
	return out, true
}

// EndFast ends the run. Last is the name of the last command that Fast has answered, or nil.
func (s *Session) EndFast(last []byte) {
	s.fast.request.Tenant, s.fast.request.Op = "", "" // they alias the command
	s.fast.path.End()
	s.giveScratch()
	if last != nil {
		s.recordLast(last)
	}
}
