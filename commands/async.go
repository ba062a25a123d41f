package commands

import (
	"time"

	"github.com/limitgate/limitgate/limit"
)

// Start begins to answer a pipeline that is nothing but checks, without waiting
// for the store: it arrived at since, or now if that is zero. It reports false,
// having done nothing, for any other. Done is called with the token when the store
// has answered.
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
	if !s.h.opts.Limiter.Start(&s.batch, since, done, token) {
		return nil, true, false
	}
	return s.replies(), true, true
}

// Deadline returns when End is to be called at the latest.
func (s *Session) Deadline() time.Time { return s.batch.Deadline() }

// Finish ends what Begin has begun. It reports false when Resume has to.
func (s *Session) Finish() (reply []byte, ok bool) {
	if !s.h.opts.Limiter.Finish(&s.batch) {
		return nil, false
	}
	return s.replies(), true
}

// FinishBlocking ends what End could not. It may wait for the store.
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

// parseChecks makes the batch of commands that all ask for decisions and are
// well-formed. If one is not the batch stays empty, and it reports false.
func (s *Session) parseChecks(cmds [][][]byte) bool {
	for _, args := range cmds {
		if len(args) == 0 {
			s.dropChecks()
			return false
		}
		f, ok := dialectOf(args[0])
		if ok {
			var complaint string
			s.batch.Requests = append(s.batch.Requests, limit.Request{})
			req := &s.batch.Requests[len(s.batch.Requests)-1]
			f, complaint = s.parse(f, args, req)
			s.dialects = append(s.dialects, f)
			ok = complaint == "" && req.Cost > 0
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
	s.dims, s.dialects = s.dims[:0], s.dialects[:0]
}
