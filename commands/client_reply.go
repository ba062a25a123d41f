package commands

import "context"

// replyMode says which replies the client does not want to hear, by CLIENT REPLY.
type replyMode uint8

const (
	replyOn   replyMode = iota
	replySkip           // that of the next command
	replyOff            // any, until it says ON
)

// serveSilently serves a command whose reply is thrown away, unless it ends the
// silence.
func (s *Session) serveSilently(ctx context.Context, args [][]byte) {
	s.decide()
	mark := len(s.out.buf)
	if s.replyMode == replySkip {
		s.replyMode = replyOn
	}
	s.replyForced = false
	s.serve(ctx, args)
	s.decide()
	if !s.replyForced {
		s.out.buf = s.out.buf[:mark]
	}
}

func clientReply(_ context.Context, s *Session, args [][]byte) {
	switch {
	case equalFold(args[2], "ON"):
		s.replyMode, s.replyForced = replyOn, true
		s.out.ok()
	case equalFold(args[2], "OFF"):
		s.replyMode = replyOff
	case equalFold(args[2], "SKIP"):
		if s.replyMode != replyOff {
			s.replyMode = replySkip
		}
	default:
		s.out.error(syntaxError)
	}
}
