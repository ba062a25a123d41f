package commands

import (
	"strconv"

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
		return f, s.h.wrongNumber(checkName)
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
