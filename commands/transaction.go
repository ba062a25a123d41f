package commands

import (
	"context"
	"strconv"
	"strings"
)

// Some clients put MULTI and EXEC around every pipeline. Commands in between are queued
// and answered by EXEC, as in Redis. There is no more to it: each check is decided
// separately, and nothing is undone.

const (
	// maxQueued and maxQueuedBytes bound what a connection may queue between MULTI and
	// EXEC.
	maxQueued      = 1024
	maxQueuedBytes = 1 << 20
)

// execAborted is the start of Redis' error for a malformed EXEC.
const execAborted = "EXECABORT Transaction discarded because of: "

// transaction is the state since MULTI.
type transaction struct {
	queued queuedCommands
	// others is the number of commands that do not concern limits: a transaction needs
	// few of them, and many make EXEC long.
	others int
	weight weight // of EXEC
	broken bool   // a command could not be queued: EXEC will fail
}

// Held returns how many bytes are queued between MULTI and EXEC. The server bounds their
// size, not their time: when all connections together hold too much, it closes those that
// hold most.
func (s *Session) Held() int {
	if s.tx == nil {
		return 0
	}
	return s.tx.queued.size()
}

// breakOff makes EXEC fail, and drops the queued commands, which it does not need.
func (t *transaction) breakOff() { *t = transaction{broken: true} }

// keep queues a copy of a command for EXEC, and returns false when there is no room.
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

// queue answers a command between MULTI and EXEC; it returns false for those that are not
// queued.
func (s *Session) queue(args [][]byte) bool {
	c, errReply := s.h.find(args)
	if s.endToken(); s.tx == nil {
		return false
	}
	if errReply == "" {
		errReply = s.permit(c, args)
	}
	t := s.tx
	switch {
	case strings.HasPrefix(errReply, execAborted):
		s.tx = nil
		s.out.error(errReply)
	case errReply != "":
		t.breakOff()
		s.out.error(errReply)
	case c.full == "exec" || c.full == "discard" || c.full == "multi" || c.full == "watch" || c.full == "reset" || c.full == "quit":
		return false
	case c.full == "client|reply":
		// Without a reply it would leave a gap in the array of EXEC's replies.
		t.breakOff()
		s.out.error("ERR Command not allowed inside a transaction")
	case t.broken:
		s.out.simple("QUEUED") // as Redis replies, also when the transaction is broken
	case !t.keep(c, args, s.weighQueued(args)):
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

// exec answers the queued commands.
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

// watchCommand has no effect: there are no keys to watch.
func watchCommand(_ context.Context, s *Session, _ [][]byte) {
	if s.tx != nil {
		s.out.error("ERR WATCH inside MULTI is not allowed")
		return
	}
	s.out.ok()
}
