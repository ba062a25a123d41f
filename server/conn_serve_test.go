package server

import (
	"context"
	"strings"
	"testing"
)

// TestPanic checks that a session that panics affects its own connection only, and that
// the log does not contain client data.
func TestPanic(t *testing.T) {
	logged := capture(t)
	r := start(t, Options{})
	bystander := r.dial()
	for _, input := range []string{"PANIC secret\r\n", "PING\r\nFAULT\r\nPING\r\n"} {
		c := r.dial()
		c.send(input)
		c.expectEnd("")
		r.closedSession()
		bystander.ping()
	}
	if got := r.server.Stats().Panics; got != 2 {
		t.Errorf("%d panics counted, want 2", got)
	}
	text := logged()
	for _, want := range []string{"session panicked", "cause=string", "index out of range [1] with length 1", "answer"} {
		if !strings.Contains(text, want) {
			t.Errorf("log lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("log has what the client sent:\n%s", text)
	}
}

// badSession panics where the client asks it to.
type badSession struct{ closed chan struct{} }

func (badSession) Serve(context.Context, [][][]byte, []byte) ([]byte, int, bool) { panic(1) }

func (badSession) Weigh([][]byte) (waits, long bool) { return true, false }

func (badSession) Held() int { return 0 }

func (s badSession) Close() {
	s.closed <- struct{}{}
	panic(2)
}

// TestPanicOutsideServe checks the other calls into a session.
func TestPanicOutsideServe(t *testing.T) {
	capture(t)
	closed := make(chan struct{}, 1)
	s := New(Options{}, func(p Peer) Session {
		if p.ID == 1 {
			panic("no session today")
		}
		return badSession{closed}
	})
	r := startWith(t, s, nil, listen(t))
	r.dial().expectEnd("")
	c := r.dial()
	c.send("PING\r\n")
	c.expectEnd("")
	receive(t, closed)
	if err := r.end(); err != nil {
		t.Errorf("Run: %v", err)
	}
	if got := r.server.Stats(); got.Panics != 3 || got.Connections != 0 {
		t.Errorf("stats %+v", got)
	}
}

// TestPeer checks the Peer that a session receives, and that the connection can be killed
// by another goroutine: while idle, while being answered, and once gone.
func TestPeer(t *testing.T) {
	d, peers := newDesk(), make(chan Peer, 10)
	s := New(Options{}, func(p Peer) Session {
		peers <- p
		return d.newSession(p)
	})
	r := startWith(t, s, d, listen(t))
	idle := r.dial()
	first := receive(t, peers)
	if first.ID != 1 || first.Addr.String() != idle.LocalAddr().String() || first.LocalAddr.String() != r.addr {
		t.Errorf("peer %+v", first)
	}
	first.Kill()
	idle.expectEnd("")
	if id := r.closedSession(); id != 1 {
		t.Errorf("session %d closed, want 1", id)
	}
	first.Kill()

	busy := r.dial()
	second := receive(t, peers)
	busy.send("BLOCK\r\n")
	receive(t, r.desk.busy)
	second.Kill()
	busy.expectEnd("")
	if id := r.closedSession(); id != 2 {
		t.Errorf("session %d closed, want 2", id)
	}

	own := r.dial()
	own.send("KILL\r\nPING\r\n")
	own.expectEnd("")
	r.closedSession()
}
