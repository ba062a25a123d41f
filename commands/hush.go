package commands

import "context"

// hush says which replies the client does not want to hear, by CLIENT REPLY.
type hush uint8

const (
	hushNone hush = iota
	hushNext      // that of the next command
	hushAll       // any, until it says ON
)

// serveHushed serves a command whose reply is thrown away, unless it ends the
// silence.
func (s *Session) serveHushed(ctx context.Context, args [][]byte) {
	s.decide()
	mark := len(s.out.buf)
	if s.hush == hushNext {
		s.hush = hushNone
	}
	s.heard = false
	s.serve(ctx, args)
	s.decide()
	if !s.heard {
		s.out.buf = s.out.buf[:mark]
	}
}

func clientReply(_ context.Context, s *Session, args [][]byte) {
	switch {
	case equalFold(args[2], "ON"):
		s.hush, s.heard = hushNone, true
		s.out.ok()
	case equalFold(args[2], "OFF"):
		s.hush = hushAll
	case equalFold(args[2], "SKIP"):
		if s.hush != hushAll {
			s.hush = hushNext
		}
	default:
		s.out.error(syntaxError)
	}
}
