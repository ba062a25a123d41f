package commands

import "context"

// replyMode is the set of replies that the client has switched off, by CLIENT REPLY.
type replyMode uint8

const (
	replyOn   replyMode = iota
	replySkip           // no reply to the next command
	replyOff            // no replies until CLIENT REPLY ON
)

// serveSilently serves a command and discards its reply, unless the command switches
// replies on.
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
