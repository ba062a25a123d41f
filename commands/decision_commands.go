package commands

import (
	"net/netip"
	"strconv"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// dialect is a syntax of requests for a decision, and the format of the reply.
// Consecutive commands of all dialects are decided as one batch.
type dialect uint8

const (
	dialectCheck       dialect = iota // RL.CHECK
	dialectRedisCell                  // CL.THROTTLE of redis-cell
	dialectGCRA                       // GCRA of Redis before the release of 8.8
	dialectThrottle                   // THROTTLE of throttlecrab
	dialectReserve                    // RL.RESERVE
	dialectAcquire                    // RL.ACQUIRE
	dialectHeaders                    // RL.CHECK with HEADERS
	dialectHeldHeaders                // RL.RESERVE and RL.ACQUIRE with HEADERS
)

// dialectNames are the commands' names in lower case, except of dialects that an option
// of a command selects.
var dialectNames = [...]string{dialectCheck: checkName, dialectRedisCell: "cl.throttle", dialectGCRA: "gcra", dialectThrottle: "throttle", dialectReserve: "rl.reserve", dialectAcquire: "rl.acquire"}

// dialectOf returns the dialect of a command that asks for a decision, without
// allocating.
func dialectOf(name []byte) (dialect, bool) {
	for f, known := range dialectNames {
		if isName(name, known) {
			return dialect(f), true
		}
	}
	return 0, false
}

// isDecision reports whether a command asks for a decision.
func isDecision(args [][]byte) bool {
	if len(args) == 0 {
		return false
	}
	_, ok := dialectOf(args[0])
	return ok
}

// isName reports whether a word is a name in lower case, ignoring the word's case.
func isName(word []byte, name string) bool {
	if len(word) != len(name) {
		return false
	}
	for i, c := range word {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[i] {
			return false
		}
	}
	return true
}

// parse parses a command of a dialect into req, which aliases args. It returns the
// dialect of the reply, and an error text, or "". A cost of 0 is a peek.
func (s *Session) parse(f dialect, args [][]byte, req *limit.Request) (answer dialect, errReply string) {
	if errReply = s.permit(s.h.decisionCommands[f], args); errReply != "" {
		return f, errReply
	}
	switch f {
	case dialectRedisCell:
		return f, s.h.inlineLimits.parseRedisCell(args, req)
	case dialectGCRA:
		return f, s.h.inlineLimits.parseGCRA(args, req)
	case dialectThrottle:
		return f, s.h.inlineLimits.parseThrottle(args, req)
	case dialectReserve, dialectAcquire:
		return s.parseHold(f, args, req)
	}
	if len(args) < 4 {
		return f, s.h.wrongNumber(checkName, args)
	}
	opts := options{takes: checkOptions}
	errReply = s.parseCheck(args, req, &opts)
	if opts.headers {
		f = dialectHeaders
	}
	return f, errReply
}

// add adds a request to the batch. If the request is malformed, or a peek, the batch
// before it is answered first.
func (s *Session) add(f dialect, args [][]byte) {
	if len(s.batch.Requests) == maxBatch {
		s.decide()
	}
	var req limit.Request
	f, errReply := s.parse(f, args, &req)
	switch {
	case errReply != "":
		s.decide()
		s.out.error(errReply)
	case req.Cost == 0:
		s.decide()
		s.batch.Requests, s.dialects = append(s.batch.Requests, req), append(s.dialects, f)
		s.h.opts.Limiter.Peek(&s.batch)
		s.writeDecisions(&s.batch)
	default:
		s.batch.Requests, s.dialects = append(s.batch.Requests, req), append(s.dialects, f)
	}
}

// decide decides the batch and writes the replies.
func (s *Session) decide() {
	if len(s.batch.Requests) == 0 {
		return
	}
	s.useTokens()
	s.h.opts.Limiter.Decide(&s.batch)
	s.writeDecisions(&s.batch)
}

// writeDecisions writes the replies of a batch, each in its dialect.
func (s *Session) writeDecisions(b *limiter.Batch) {
	for i := range b.Decisions {
		switch d := &b.Decisions[i]; s.dialects[i] {
		case dialectRedisCell, dialectGCRA:
			s.out.redisCell(d)
		case dialectThrottle:
			s.out.throttle(d, &b.Requests[i])
		case dialectHeaders:
			s.decision(d, 8)
			s.out.headers(d)
		case dialectReserve, dialectAcquire, dialectHeldHeaders:
			s.held(s.dialects[i], b, i)
		default:
			s.decision(d, 7)
		}
	}
	s.dropChecks()
}

// numFrames is how many frames a scratch keeps: enough for the limits that bind most decisions of
// a busy connection. A power of two.
const numFrames = 64

// decisionFrame has the parts of a reply to RL.CHECK that are the same for many decisions.
type decisionFrame struct {
	key  frameKey
	head []byte // up to the limit
	tail []byte // from the limit_id on
}

// frameKey is what those parts depend on.
type frameKey struct {
	binding  *limit.Limit
	capacity int64
	source   limit.Source
	allowed  int64 // 1 or 0
}

// frame returns the frame of a decision.
func (s *scratch) frame(d *limit.Decision) *decisionFrame {
	key := frameKey{d.Binding, d.Limit, d.Source, 0}
	if d.Allowed {
		key.allowed = 1
	}
	n := uint(d.Source)<<1 + uint(key.allowed)
	if d.Binding != nil {
		n += uint(d.Binding.Ordinal) * 7
	}
	f := &s.frames[n%numFrames]
	if f.key != key { // that of an unused frame has no source
		head, tail := reply{buf: f.head[:0]}, reply{buf: f.tail[:0]}
		head.integer(key.allowed)
		head.integer(d.Limit)
		tail.bulk(d.LimitID())
		tail.bulk(d.Source.String())
		*f = decisionFrame{key, head.buf, tail.buf}
	}
	return f
}

// decision appends the reply of RL.CHECK: allowed, limit, remaining, retry_after_ms,
// reset_after_ms, limit_id, source. The reply has elements elements, at most 9; the caller
// appends the others.
func (s *Session) decision(d *limit.Decision, elements int) {
	f := s.frame(d)
	buf := append(s.out.buf, '*', '0'+byte(elements), '\r', '\n')
	buf = append(append(buf, f.head...), ':')
	buf = append(strconv.AppendInt(buf, d.Remaining, 10), "\r\n:"...)
	buf = append(strconv.AppendInt(buf, d.RetryAfter, 10), "\r\n:"...)
	buf = append(strconv.AppendInt(buf, d.ResetAfter, 10), "\r\n"...)
	s.out.buf = append(buf, f.tail...)
}

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
