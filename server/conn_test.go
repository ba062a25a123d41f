package server

import (
	"bufio"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestPiecesWithoutLoop: a connection with a goroutine of its own also writes large
// replies a piece at a time, and the memory that it holds is counted.
func TestPiecesWithoutLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{MaxBuffered: 4 << 20}, ln)
		nc := ln.dial()
		writeAll(t, nc, strings.Repeat("BIG\r\n", 100)+"PING\r\n")
		synctest.Wait()
		if got := r.server.ledger.total; got < largeReply || got > 3*largeReply {
			t.Errorf("%d bytes are held for a client that does not read", got)
		}
		in := bufio.NewReader(nc)
		for range 100 {
			expectLine(t, in, "*1\r\n")
			expectLine(t, in, "$30720\r\n")
			if _, err := in.Discard(30720 + 2); err != nil {
				t.Fatal(err)
			}
		}
		expectLine(t, in, "+PONG\r\n")
		synctest.Wait()
		if got := r.server.ledger.total; got != 0 {
			t.Errorf("%d bytes are held", got)
		}
		nc.Close()
	})
}

// TestLongWithoutLoop: few long commands of such connections run at a time, and a
// connection that is killed leaves the queue.
func TestLongWithoutLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{ShutdownTimeout: time.Second}, ln)
		for range 10 {
			writeAll(t, ln.dial(), "WALK\r\n")
		}
		ready := ln.dial()
		in := bufio.NewReader(ready)
		writeAll(t, ready, "PING\r\n")
		expectLine(t, in, "+PONG\r\n")
		synctest.Wait()
		if walks := int(r.desk.walks.Load()); walks != longTasks() {
			t.Errorf("%d run at once, want %d", walks, longTasks())
		}
		if err := r.end(); err == nil || !strings.Contains(err.Error(), "10 killed") {
			t.Errorf("Run: %v", err)
		}
		if walks := int(r.desk.walks.Load()); walks > 2*longTasks() {
			t.Errorf("%d were run for connections that were killed", walks)
		}
	})
}
