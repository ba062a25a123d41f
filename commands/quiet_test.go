package commands_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"

	"github.com/limitgate/limitgate/commands"
)

// TestQuietSessionIsSmall: sessions that once decided deep pipelines keep no memory of
// them.
func TestQuietSessionIsSmall(t *testing.T) {
	h := newHandler(t, handlerOptions{})
	var pipeline [][][]byte
	for i := range 1000 {
		pipeline = append(pipeline, words(fmt.Sprintf("RL.CHECK tenant%d o 1.2.3.%d DIM user u%d", i, i%256, i))[0])
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC() // twice, as a pool is emptied by the second
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	var sessions []*commands.Session
	for i := range 200 {
		s := h.NewSession(commands.Peer{ID: int64(i)})
		serveAll(t, s, words("PING"))
		sessions = append(sessions, s)
	}
	serveAll(t, sessions[0], slices.Clone(pipeline)) // creates the buckets
	before := heap()
	for _, s := range sessions {
		serveAll(t, s, pipeline)
	}
	if each := (heap() - before) / int64(len(sessions)); each > 4<<10 {
		t.Errorf("a quiet session keeps %d bytes", each)
	}
	for _, s := range sessions {
		s.Close()
	}
}

// TestHeld: commands queued by MULTI are counted at the memory they take, until they are
// dropped.
func TestHeld(t *testing.T) {
	for _, end := range []string{"EXEC", "DISCARD", "RESET", "nonsense", "CLIENT REPLY OFF"} {
		s := newSession(t, newHandler(t, handlerOptions{}))
		heap := func() int64 {
			var m runtime.MemStats
			for range 3 { // what earlier tests left in pools goes with the second one
				runtime.GC()
			}
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		serveAll(t, s, words("MULTI"))
		before := heap()
		cmd := words("RL.PEEK tenant operation 1.2.3.4 1 DIM user u1")
		for range 1000 {
			serveAll(t, s, cmd)
		}
		kept, held := heap()-before, int64(s.Held())
		if kept > held+held/4 || held > 4*kept {
			t.Errorf("%d bytes are said to be held, and %d are kept", held, kept)
		}
		serveAll(t, s, words(end))
		if s.Held() != 0 {
			t.Errorf("behind %s %d bytes are held", end, s.Held())
		}
	}
}
