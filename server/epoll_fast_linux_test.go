package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
)

var _ FastSession = (*sprinter)(nil)

// sprinter is a session with a fast path for FAST and BROKEN. The reply to FAST is its words.
type sprinter struct {
	*waiter
	fast   *atomic.Int64 // commands that Fast has answered, of all sessions
	inRun  bool
	called int // in a run
}

func (s *sprinter) BeginFast() bool {
	if s.inRun {
		panic("a run within a run")
	}
	s.inRun, s.called = true, 0
	return true
}

func (s *sprinter) Fast(cmd [][]byte, out []byte) ([]byte, bool) {
	if s.called++; s.called > asyncCommands {
		panic("too many commands in a turn")
	}
	switch string(cmd[0]) {
	case "FAST":
		s.fast.Add(1)
		return appendWords(out, cmd), true
	case "BROKEN":
		panic("in Fast")
	}
	return out, false
}

func (s *sprinter) EndFast([]byte) { s.inRun = false }

func (s *sprinter) Serve(ctx context.Context, cmds [][][]byte, out []byte) ([]byte, int, bool) {
	if string(cmds[0][0]) == "FAST" {
		return appendWords(out, cmds[0]), 1, false
	}
	for i, cmd := range cmds {
		if string(cmd[0]) == "FAST" {
			cmds = cmds[:i]
			break
		}
	}
	return s.waiter.Serve(ctx, cmds, out)
}

func startSprinters(t *testing.T) (r *run, fast *atomic.Int64) {
	t.Helper()
	fast = new(atomic.Int64)
	f := &front{desk: newDesk(), asked: make(chan question, 100)}
	return startWith(t, New(Options{}, func(p Peer) Session {
		return &sprinter{waiter: f.newSession(p).(*waiter), fast: fast}
	}), f.desk, listen(t)), fast
}

// TestFastOrder checks that commands of the fast path and others are answered in their order,
// however the client cuts its pipelines.
func TestFastOrder(t *testing.T) {
	r, fast := startSprinters(t)
	random := rand.New(rand.NewPCG(1, 1))
	c := r.dial()
	for range 300 {
		var text, want strings.Builder
		for i := range 1 + random.IntN(200) {
			n := fmt.Sprint(i)
			switch random.IntN(12) {
			case 0:
				text.WriteString(command("ECHO", n))
				want.Write(appendWords(nil, [][]byte{[]byte("ECHO"), []byte(n)}))
			case 1:
				text.WriteString(command("LIGHT"))
				want.WriteString("+LIGHT\r\n")
			case 2:
				text.WriteString("ECHO inline " + n + "\r\n")
				want.Write(appendWords(nil, [][]byte{[]byte("ECHO"), []byte("inline"), []byte(n)}))
			case 3:
				text.WriteString("FAST " + n + "\r\n\r\n*0\r\n")
				want.Write(appendWords(nil, [][]byte{[]byte("FAST"), []byte(n)}))
			case 4:
				text.WriteString(command("LONG", n))
				want.WriteString("-ERR unknown command\r\n")
			default:
				text.WriteString(command("FAST", n))
				want.Write(appendWords(nil, [][]byte{[]byte("FAST"), []byte(n)}))
			}
		}
		for rest := text.String(); rest != ""; {
			piece := rest[:min(len(rest), 1+random.IntN(2000))]
			c.send(piece)
			rest = rest[len(piece):]
		}
		c.expect(want.String())
	}
	if fast.Load() == 0 {
		t.Error("the fast path answered nothing")
	}
}

// TestFastBeforeLong checks that the replies of the fast path do not wait for a long command
// behind them.
func TestFastBeforeLong(t *testing.T) {
	r, _ := startSprinters(t)
	c := r.dial()
	c.send(command("FAST", "1") + command("WALK") + command("FAST", "2"))
	c.expect(string(appendWords(nil, [][]byte{[]byte("FAST"), []byte("1")})))
	receive(t, r.desk.busy)
	close(r.desk.proceed)
	c.expect("+DONE\r\n" + string(appendWords(nil, [][]byte{[]byte("FAST"), []byte("2")})))
}

// TestFastTurn checks that a turn of a connection has a bounded number of commands, whatever has
// arrived. The session panics otherwise.
func TestFastTurn(t *testing.T) {
	r, fast := startSprinters(t)
	c := r.dial()
	const n = 40 * asyncCommands
	c.send(strings.Repeat(command("FAST"), n))
	c.expect(strings.Repeat(string(appendWords(nil, [][]byte{[]byte("FAST")})), n))
	if fast.Load() != n {
		t.Errorf("%d of %d commands took the fast path", fast.Load(), n)
	}
}

// TestFastThenHTTP checks that commands before a line of HTTP on the fast path are answered.
func TestFastThenHTTP(t *testing.T) {
	for _, between := range []string{"", command("ECHO", "2")} {
		r, _ := startSprinters(t)
		c := r.dial()
		c.send(command("FAST", "1") + between + "Host: x\r\n")
		c.expectEnd(string(appendWords(nil, [][]byte{[]byte("FAST"), []byte("1")})) + httpReply)
	}
}

// TestFastReleases checks that a batch references no input after a run.
func TestFastReleases(t *testing.T) {
	c := &epollConn{listener: &listener{server: New(Options{}, nil)}, fast: &sprinter{waiter: &waiter{}, fast: new(atomic.Int64)}}
	if _, err := c.in.fill(strings.NewReader(command("FAST", "a", "b", "c") + command("FAST", "d") + command("ECHO", "e", "f", "g", "h"))); err != nil {
		t.Fatal(err)
	}
	b := takeBatch()
	b.most = asyncCommands
	if !c.answerFast(b) || len(b.reply) == 0 {
		t.Fatalf("the reply is %q", b.reply)
	}
	for i, word := range b.words[:cap(b.words)] {
		if word != nil {
			t.Errorf("word %d is %q", i, word)
		}
	}
}

// TestFastBroken checks that a panic in the fast path ends its connection alone.
func TestFastBroken(t *testing.T) {
	r, _ := startSprinters(t)
	c, other := r.dial(), r.dial()
	c.send(command("FAST", "1") + command("BROKEN"))
	c.expectEnd("")
	other.send(command("FAST", "2"))
	other.expect(string(appendWords(nil, [][]byte{[]byte("FAST"), []byte("2")})))
}

// TestFastThenMalformed checks that commands before a malformed one are answered.
func TestFastThenMalformed(t *testing.T) {
	r, _ := startSprinters(t)
	c := r.dial()
	c.send(command("FAST", "1") + "*1\r\n!\r\n")
	want := appendWords(nil, [][]byte{[]byte("FAST"), []byte("1")})
	c.expect(string(want))
	c.expectEnd("-ERR Protocol error: expected '$', got '!'\r\n")
}
