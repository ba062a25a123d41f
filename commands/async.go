package commands

import (
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Start starts to answer a pipeline that consists of checks, without waiting for the
// store. The pipeline arrived at since, or now if that is zero. Start returns false,
// without effect, for any other pipeline. It calls done with the token when the store has
// replied.
func (s *Session) Start(since time.Time, cmds [][][]byte, out []byte, done func(token uint64), token uint64) (reply []byte, begun, decided bool) {
	if s.tx != nil || s.replyMode != replyOn || len(cmds) > maxBatch || !isDecision(cmds[0]) {
		return out, false, false
	}
	s.takeScratch()
	if !s.parseChecks(cmds) {
		s.giveScratch()
		return out, false, false
	}
	s.out.buf = out
	s.recordLastCommand(cmds)
	s.useTokens()
	if !s.h.opts.Limiter.Start(&s.batch, since, done, token) {
		return nil, true, false
	}
	return s.replies(), true, true
}

// Deadline returns the latest time for the call of Finish.
func (s *Session) Deadline() time.Time { return s.batch.Deadline() }

// Finish finishes what Start has started. It returns false if FinishBlocking must do so.
func (s *Session) Finish() (reply []byte, ok bool) {
	if !s.h.opts.Limiter.Finish(&s.batch) {
		return nil, false
	}
	return s.replies(), true
}

// FinishBlocking finishes what Finish could not. It may wait for the store.
func (s *Session) FinishBlocking() (reply []byte) {
	s.h.opts.Limiter.FinishBlocking(&s.batch)
	return s.replies()
}

func (s *Session) replies() []byte {
	s.writeDecisions(&s.batch)
	s.giveScratch()
	reply := s.out.buf
	s.out.buf = nil
	return reply
}

// parseChecks fills the batch from commands that all ask for decisions and are
// well-formed. If one is not, the batch stays empty and parseChecks returns false.
func (s *Session) parseChecks(cmds [][][]byte) bool {
	for _, args := range cmds {
		if len(args) == 0 {
			s.dropChecks()
			return false
		}
		f, ok := dialectOf(args[0])
		if ok {
			var errReply string
			s.batch.Requests = append(s.batch.Requests, limit.Request{})
			req := &s.batch.Requests[len(s.batch.Requests)-1]
			f, errReply = s.parse(f, args, req)
			s.dialects = append(s.dialects, f)
			ok = errReply == "" && req.Cost > 0
		}
		if !ok {
			s.dropChecks()
			return false
		}
	}
	return true
}

// dropChecks empties the batch.
func (s *Session) dropChecks() {
	s.batch.Reset()
	clear(s.dims)
	s.dims, s.dialects, s.tokens = s.dims[:0], s.dialects[:0], false
}
