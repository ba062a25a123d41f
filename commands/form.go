package commands

import (
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// form is one of the ways to ask for a decision, and to be answered. Commands of
// these forms that follow each other are decided as one batch.
type form uint8

const (
	formCheck    form = iota // RL.CHECK
	formCell                 // CL.THROTTLE, as redis-cell has it
	formGCRA                 // GCRA, as Redis had it before the release of 8.8
	formThrottle             // THROTTLE, as throttlecrab has it
	formReserve              // RL.RESERVE
	formAcquire              // RL.ACQUIRE
	formHeaders              // RL.CHECK with HEADERS
)

// formNames are the commands' names in lower case, but for those that options of a
// command make.
var formNames = [...]string{formCheck: checkName, formCell: "cl.throttle", formGCRA: "gcra", formThrottle: "throttle", formReserve: "rl.reserve", formAcquire: "rl.acquire"}

// formOf returns the form of a command that asks for a decision, without allocating.
func formOf(name []byte) (form, bool) {
	for f, known := range formNames {
		if isName(name, known) {
			return form(f), true
		}
	}
	return 0, false
}

// isDecision reports whether a command asks for a decision.
func isDecision(args [][]byte) bool {
	if len(args) == 0 {
		return false
	}
	_, ok := formOf(args[0])
	return ok
}

// isName reports whether a word is a name in lower case, in any case of letters.
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

// parse reads a command of a form into req, which aliases args, and returns the form
// of its answer, and what is wrong with it, or "". A cost of 0 asks for a look only.
func (s *Session) parse(f form, args [][]byte, req *limit.Request) (answer form, complaint string) {
	switch f {
	case formCell:
		return f, s.h.own.parseCell(args, req)
	case formGCRA:
		return f, s.h.own.parseGCRA(args, req)
	case formThrottle:
		return f, s.h.own.parseThrottle(args, req)
	case formReserve:
		return f, s.parseReserve(args, req)
	case formAcquire:
		return f, s.parseAcquire(args, req)
	}
	if len(args) < 4 {
		return f, "ERR wrong number of arguments for '" + checkName + "' command"
	}
	opts := options{takes: optionID | optionHeaders}
	complaint = s.parseCheck(args, req, &opts)
	if opts.headers {
		f = formHeaders
	}
	return f, complaint
}

// add adds a request to the batch. Where it is malformed, or takes nothing, what came
// before it is answered first.
func (s *Session) add(f form, args [][]byte) {
	if len(s.batch.Requests) == maxBatch {
		s.decide()
	}
	var req limit.Request
	f, complaint := s.parse(f, args, &req)
	switch {
	case complaint != "":
		s.decide()
		s.out.error(complaint)
	case req.Cost == 0:
		s.decide()
		s.batch.Requests, s.forms = append(s.batch.Requests, req), append(s.forms, f)
		s.h.opts.Limiter.Peek(&s.batch)
		s.writeDecisions(&s.batch)
	default:
		s.batch.Requests, s.forms = append(s.batch.Requests, req), append(s.forms, f)
	}
}

// decide decides the batch and writes the replies.
func (s *Session) decide() {
	if len(s.batch.Requests) == 0 {
		return
	}
	s.h.opts.Limiter.Decide(&s.batch)
	s.writeDecisions(&s.batch)
}

// writeDecisions writes the replies of a batch, each in its form.
func (s *Session) writeDecisions(b *limiter.Batch) {
	for i := range b.Decisions {
		switch d := &b.Decisions[i]; s.forms[i] {
		case formCell, formGCRA:
			s.out.cell(d)
		case formThrottle:
			s.out.throttle(d, &b.Requests[i])
		case formHeaders:
			s.out.decision(d, 8)
			s.out.headers(d)
		case formReserve, formAcquire:
			s.out.decision(d, 8)
			s.out.bulk(heldID(b, i))
		default:
			s.out.decision(d, 7)
		}
	}
	s.dropChecks()
}
