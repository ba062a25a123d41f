package commands

import (
	"bytes"
	"context"
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
	// wordOverhead is what a word that is kept costs beside its bytes: a slice, and
	// what the allocator rounds up.
	wordOverhead = 32
)

// execAborted is what Redis says when EXEC itself is malformed.
const execAborted = "EXECABORT Transaction discarded because of: "

// transaction is what came since MULTI.
type transaction struct {
	cmds   [][][]byte
	bytes  int
	broken bool // one of them could not be kept: EXEC will refuse
}

// fits reports whether a command may be kept as well, and counts it.
func (t *transaction) fits(args [][]byte) bool {
	for _, a := range args {
		t.bytes += len(a) + wordOverhead
	}
	return t.bytes <= maxQueuedBytes
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
		t.broken = true
		s.out.error(complaint)
	case c.full == "exec" || c.full == "discard" || c.full == "multi" || c.full == "watch" || c.full == "reset" || c.full == "quit":
		return false
	case c.full == "client|reply":
		// It would leave a hole in the array that EXEC answers.
		t.broken = true
		s.out.error("ERR Command not allowed inside a transaction")
	case len(t.cmds) == maxQueued || !t.fits(args):
		t.broken = true
		s.out.error("ERR too many commands in a transaction")
	default:
		// What args alias is only there until this batch is answered.
		kept := make([][]byte, len(args))
		for i, a := range args {
			kept[i] = bytes.Clone(a)
		}
		t.cmds = append(t.cmds, kept)
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
		s.out.array(len(t.cmds))
		for _, args := range t.cmds {
			s.answer(ctx, args)
		}
		s.decide()
	}
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
