package commands

import (
	"context"
	"strconv"
	"strings"
)

// Some clients put MULTI and EXEC around every pipeline. Commands in between are
// kept and answered by EXEC, as Redis does. It is no more than that: each check
// is decided on its own, and nothing is undone.

const (
	// maxQueued and maxQueuedBytes bound what a connection may keep between MULTI
	// and EXEC.
	maxQueued      = 1024
	maxQueuedBytes = 1 << 20
)

// execAborted is what Redis says when EXEC itself is malformed.
const execAborted = "EXECABORT Transaction discarded because of: "

// transaction is what came since MULTI.
type transaction struct {
	queued queuedCommands
	// others are the commands that are not about limits: few are called for in a
	// transaction, and many make EXEC long.
	others int
	weight weight // of EXEC
	broken bool   // one of them could not be kept: EXEC will refuse
}

// Held returns how many bytes are kept between MULTI and EXEC. The server bounds them,
// and not how long: it closes the connections that hold most when all together hold too
// much.
func (s *Session) Held() int {
	if s.tx == nil {
		return 0
	}
	return s.tx.queued.size()
}

// breakOff has EXEC refuse, which needs nothing kept.
func (t *transaction) breakOff() { *t = transaction{broken: true} }

// keep keeps a copy of a command for EXEC, and reports false when there is no room.
func (t *transaction) keep(c *command, args [][]byte, w weight) bool {
	if !t.queued.add(args) {
		return false
	}
	if c.group != groupLimit {
		t.others++
	}
	if t.others > manyWords {
		w = long
	}
	t.weight = max(t.weight, w)
	return true
}

// queue answers a command between MULTI and EXEC; it returns false for those
// that do not wait.
func (s *Session) queue(args [][]byte) bool {
	c, complaint := s.h.find(args)
	t := s.tx
	switch {
	case strings.HasPrefix(complaint, execAborted):
		s.tx = nil
		s.out.error(complaint)
	case complaint != "":
		t.breakOff()
		s.out.error(complaint)
	case c.full == "exec" || c.full == "discard" || c.full == "multi" || c.full == "watch" || c.full == "reset" || c.full == "quit":
		return false
	case c.full == "client|reply":
		// It would leave a hole in the array that EXEC answers.
		t.breakOff()
		s.out.error("ERR Command not allowed inside a transaction")
	case t.broken:
		s.out.simple("QUEUED") // as Redis says, which keeps it no more
	case !t.keep(c, args, s.h.weigh(args)):
		t.breakOff()
		s.out.error("ERR too many commands in a transaction")
	default:
		s.out.simple("QUEUED")
	}
	return true
}

func multiCommand(_ context.Context, s *Session, _ [][]byte) {
	if s.tx != nil {
		s.out.error("ERR MULTI calls can not be nested")
		return
	}
	s.tx = &transaction{}
	s.out.ok()
}

func execCommand(ctx context.Context, s *Session, _ [][]byte) {
	t := s.tx
	s.tx = nil
	switch {
	case t == nil:
		s.out.error("ERR EXEC without MULTI")
	case t.broken:
		s.out.error("EXECABORT Transaction discarded because of previous errors.")
	default:
		s.exec(ctx, &t.queued)
	}
}

// exec answers what was kept.
func (s *Session) exec(ctx context.Context, queued *queuedCommands) {
	begin := len(s.out.buf)
	s.out.array(queued.count)
	for args := range queued.all() {
		if len(s.out.buf)-begin > maxReply && !isDecision(args) {
			s.decide()
			s.out.error("ERR the reply to this transaction exceeds " + strconv.Itoa(maxReply) + " bytes: send fewer such commands at once")
			continue
		}
		s.answer(ctx, args)
	}
	s.decide()
}

func discardCommand(_ context.Context, s *Session, _ [][]byte) {
	if s.tx == nil {
		s.out.error("ERR DISCARD without MULTI")
		return
	}
	s.tx = nil
	s.out.ok()
}

// watchCommand accepts what changes nothing: there are no keys to watch.
func watchCommand(_ context.Context, s *Session, _ [][]byte) {
	if s.tx != nil {
		s.out.error("ERR WATCH inside MULTI is not allowed")
		return
	}
	s.out.ok()
}
