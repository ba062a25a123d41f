package server

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
)

var _ AsyncSession = (*waiter)(nil)

// waiter is an asynchronous session. Pipelines that begin with LATER or SOON are answered
// by the test, or after an hour or 20 ms; the reply is the words themselves.
type waiter struct {
	*clerk
	front *front
	cmds  [][][]byte
	out   []byte
	until time.Time
}

// front is shared by the sessions of a test.
type front struct {
	desk   *desk
	asked  chan question
	resume bool // Finish leaves the work to FinishBlocking

	hold     chan struct{} // HOLD keeps the loop until it is closed
	held     chan struct{} // has an item once HOLD does
	served   chan string   // the words behind NOTE
	sessions atomic.Int64
}

// question is a started pipeline that waits for its answer.
type question struct {
	done  func(uint64)
	token uint64
	since time.Time
}

func (q question) answer() { q.done(q.token) }

func (f *front) newSession(p Peer) Session {
	f.sessions.Add(1)
	return &waiter{clerk: &clerk{desk: f.desk, peer: p}, front: f}
}

func (w *waiter) Start(since time.Time, cmds [][][]byte, out []byte, done func(uint64), token uint64) ([]byte, bool, bool) {
	switch string(cmds[0][0]) {
	case "HOLD":
		w.front.held <- struct{}{}
		<-w.front.hold
		return appendWords(out, cmds[0]), true, true
	case "NOTE":
		w.front.served <- string(cmds[0][1])
		return appendWords(out, cmds[0]), true, true
	case "NOW":
		return appendWords(out, cmds[0]), true, true
	case "LATER", "SOON":
		w.cmds, w.out, w.until = cmds, out, time.Now().Add(time.Hour)
		if string(cmds[0][0]) == "SOON" {
			w.until = time.Now().Add(20 * time.Millisecond)
		}
		w.front.asked <- question{done, token, since}
		return nil, true, false
	case "BROKEN":
		panic("in Begin")
	default:
		return nil, false, false
	}
}

func (w *waiter) Deadline() time.Time { return w.until }

func (w *waiter) Finish() ([]byte, bool) {
	if w.front.resume {
		return nil, false
	}
	return w.FinishBlocking(), true
}

func (w *waiter) FinishBlocking() []byte {
	out := w.out
	for _, cmd := range w.cmds {
		out = appendWords(out, cmd)
	}
	return out
}

func startWaiters(t *testing.T, opts Options, f *front) *run {
	t.Helper()
	f.desk, f.asked = newDesk(), make(chan question, 100)
	return startWith(t, New(opts, f.newSession), f.desk, listen(t))
}

// TestAsyncOrder: while one connection's session waits, the others are served, and later
// commands of the waiting connection stay queued.
func TestAsyncOrder(t *testing.T) {
	for _, resume := range []bool{false, true} {
		t.Run(fmt.Sprint("resume=", resume), func(t *testing.T) {
			f := &front{resume: resume}
			r := startWaiters(t, Options{}, f)
			a, b := r.dial(), r.dial()
			a.send(command("LATER", "1"))
			first := receive(t, f.asked)
			a.send(command("LATER", "2") + command("NOW", "3"))
			b.send(command("NOW", "b"))
			b.expect(string(appendWords(nil, [][]byte{[]byte("NOW"), []byte("b")})))
			if len(f.asked) != 0 {
				t.Fatal("a second question before the first was answered")
			}
			first.answer()
			a.expect(string(appendWords(nil, [][]byte{[]byte("LATER"), []byte("1")})))
			receive(t, f.asked).answer()
			a.expect(string(appendWords(nil, [][]byte{[]byte("LATER"), []byte("2")})))
		})
	}
}

// TestNewConnectionsLast: of connections that have sent something in a round, new ones are served last.
func TestNewConnectionsLast(t *testing.T) {
	loops, _ := startLoops(t)
	f := &front{hold: make(chan struct{}), held: make(chan struct{}, 1), served: make(chan string, 10)}
	r := startWaiters(t, Options{Loops: loops}, f)
	reply := func(words ...string) string {
		var all [][]byte
		for _, w := range words {
			all = append(all, []byte(w))
		}
		return string(appendWords(nil, all))
	}
	old, holder := r.dial(), r.dial()
	for _, c := range []*client{old, holder} {
		c.send(command("NOTE", "first"))
		c.expect(reply("NOTE", "first"))
	}
	fresh := []*client{r.dial(), r.dial(), r.dial()}
	redistest.Eventually(t, testTimeout, "the sessions", func() bool { return f.sessions.Load() == 5 })
	holder.send(command("HOLD"))
	receive(t, f.held) // what is sent now is of the next round
	for _, c := range fresh {
		c.send(command("NOTE", "fresh"))
	}
	old.send(command("NOTE", "old"))
	close(f.hold)
	holder.expect(reply("HOLD"))
	for _, c := range fresh {
		c.expect(reply("NOTE", "fresh"))
	}
	old.expect(reply("NOTE", "old"))
	for i, want := range []string{"first", "first", "old", "fresh", "fresh", "fresh"} {
		if got := receive(t, f.served); got != want {
			t.Errorf("served at place %d: %s, want %s", i, got, want)
		}
	}
}

// TestAsyncSince: a pipeline that had to wait for an earlier one gets the time since
// when; the others get zero.
func TestAsyncSince(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{}, f)
	c, other := r.dial(), r.dial()
	c.send(command("LATER", "1"))
	first := receive(t, f.asked)
	if !first.since.IsZero() {
		t.Errorf("the first has waited since %v", first.since)
	}
	before := time.Now()
	c.send(command("LATER", "2"))
	other.send(command("NOW")) // once it is answered, the loop has read the second
	other.expect(string(appendWords(nil, [][]byte{[]byte("NOW")})))
	other.send(command("NOW"))
	other.expect(string(appendWords(nil, [][]byte{[]byte("NOW")})))
	seen := time.Now()
	first.answer()
	second := receive(t, f.asked)
	if second.since.Before(before) || second.since.After(seen) {
		t.Errorf("the second has waited since %v, want between %v and %v", second.since, before, seen)
	}
	second.answer()
}

// TestAsyncSinceOfHalf: the time in which a client sends a command in pieces does not
// count as waiting.
func TestAsyncSinceOfHalf(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{}, f)
	c, other := r.dial(), r.dial()
	second := command("LATER", "2")
	c.send(command("LATER", "1"))
	first := receive(t, f.asked)
	c.send(second[:5])
	for range 2 { // once it is answered, the loop has read the piece
		other.send(command("NOW"))
		other.expect(string(appendWords(nil, [][]byte{[]byte("NOW")})))
	}
	first.answer()
	c.expect(string(appendWords(nil, [][]byte{[]byte("LATER"), []byte("1")})))
	for range 2 { // and has checked it once more
		other.send(command("NOW"))
		other.expect(string(appendWords(nil, [][]byte{[]byte("NOW")})))
	}
	c.send(second[5:])
	q := receive(t, f.asked)
	if !q.since.IsZero() {
		t.Errorf("the second has waited since %v", q.since)
	}
	q.answer()
}

// TestAsyncDeadline: the loop does not wait for a session beyond its deadline, and a late
// done does not affect the next question.
func TestAsyncDeadline(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{}, f)
	c := r.dial()
	c.send(command("SOON", "1"))
	late := receive(t, f.asked)
	c.expect(string(appendWords(nil, [][]byte{[]byte("SOON"), []byte("1")})))
	c.send(command("LATER", "2"))
	next := receive(t, f.asked)
	late.answer()
	other := r.dial() // once it is answered, the loop has seen the late done
	other.send(command("NOW"))
	other.expect(string(appendWords(nil, [][]byte{[]byte("NOW")})))
	if n := f.desk.replies(c); n != 0 {
		t.Errorf("%d bytes before the answer", n)
	}
	next.answer()
	c.expect(string(appendWords(nil, [][]byte{[]byte("LATER"), []byte("2")})))
}

// replies returns how many bytes wait for a client.
func (d *desk) replies(c *client) int {
	_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
	defer func() { _ = c.SetReadDeadline(time.Time{}) }()
	n, _ := c.r.Peek(1)
	return len(n)
}

// TestAsyncDrain: a drain waits for started work, and only until the deadline.
func TestAsyncDrain(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{}, f)
	c, idle := r.dial(), r.dial()
	idle.send(command("NOW"))
	idle.expect(string(appendWords(nil, [][]byte{[]byte("NOW")})))
	c.send(command("LATER", "1"))
	q := receive(t, f.asked)
	ended := make(chan error, 1)
	go func() { ended <- r.end() }()
	idle.expectEnd("")
	q.answer()
	c.expectEnd(string(appendWords(nil, [][]byte{[]byte("LATER"), []byte("1")})))
	if err := receive(t, ended); err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestAsyncKilled: a client that disconnects while its session waits affects no other.
func TestAsyncKilled(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{}, f)
	var questions []question
	for range 20 {
		c := r.dial()
		c.send(command("LATER"))
		questions = append(questions, receive(t, f.asked))
		_ = c.Close()
	}
	c := r.dial()
	c.send(command("NOW"))
	c.expect(string(appendWords(nil, [][]byte{[]byte("NOW")})))
	for _, q := range questions {
		q.answer()
	}
	await(t, "the end of the others", func() bool { return r.server.Stats().Connections == 1 })
}

// TestAsyncPipeline: deep pipelines are served in bounded batches, in order, with any
// other commands mixed in.
func TestAsyncPipeline(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{}, f)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case q := <-f.asked:
				q.answer()
			case <-stop:
				return
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	c := r.dial()
	var in strings.Builder
	var want bytes.Buffer
	for i := range 1000 {
		words := []string{"LATER", fmt.Sprint(i)}
		in.WriteString(command(words...))
		want.Write(appendWords(nil, [][]byte{[]byte(words[0]), []byte(words[1])}))
	}
	go c.send(in.String())
	c.expect(want.String())
}

// TestTimeoutsOverTCP: silence and half-sent commands end connections of an event loop as
// they do others.
func TestTimeoutsOverTCP(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{IdleTimeout: time.Second, RequestTimeout: time.Second}, f)
	silent, half, busy := r.dial(), r.dial(), r.dial()
	half.send("*2\r\n$3\r\n")
	busy.send(command("LATER"))
	q := receive(t, f.asked)
	silent.expectEnd("")
	half.expectEnd("")
	await(t, "both to be counted", func() bool { return r.server.Stats().TimedOut == 2 })
	q.answer() // waiting for a session is not idle time
	busy.expect(string(appendWords(nil, [][]byte{[]byte("LATER")})))
}
