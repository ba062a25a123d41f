package server

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestMaxAge: connections over their maximum age are closed, also busy ones, each at its
// own time.
func TestMaxAge(t *testing.T) {
	const age = 10 * time.Minute
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{MaxAge: age}, ln)
		begun := time.Now()
		quiet, busy := ln.dial(), ln.dial()
		ended := make(chan time.Duration, 2)
		go func() {
			_, _ = io.ReadAll(quiet)
			ended <- time.Since(begun)
		}()
		go func() {
			in := bufio.NewReader(busy)
			for {
				if _, err := io.WriteString(busy, "PING\r\n"); err != nil {
					break
				}
				if line, err := in.ReadString('\n'); err != nil || line != "+PONG\r\n" {
					break
				}
				time.Sleep(time.Second)
			}
			ended <- time.Since(begun)
		}()
		for range 2 {
			if took := <-ended; took < age || took > age+age/ageSpread+2*time.Second {
				t.Errorf("closed after %v", took)
			}
		}
		if got := r.server.Stats(); got.Retired != 2 || got.TimedOut != 0 {
			t.Errorf("stats %+v", got)
		}
	})
}

// TestMaxAgeSparesHalf: a command that has begun to arrive is answered first.
func TestMaxAgeSparesHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		startOn(t, Options{MaxAge: 10 * time.Second}, ln)
		nc := ln.dial()
		in := bufio.NewReader(nc)
		time.Sleep(9 * time.Second)
		writeAll(t, nc, "PI")
		time.Sleep(20 * time.Second)
		writeAll(t, nc, "NG\r\n")
		expectLine(t, in, "+PONG\r\n")
		expectEndAfter(t, in, quietGrace)
	})
}

// TestRetirement: connections that began together do not end together, nor early.
func TestRetirement(t *testing.T) {
	opts := Options{MaxAge: time.Hour}
	begun := time.Unix(1e9, 0)
	seen := map[time.Time]bool{}
	var least, most time.Duration = opts.MaxAge * 2, 0
	for range 1000 {
		at := opts.retirement(begun)
		seen[at] = true
		least, most = min(least, at.Sub(begun)), max(most, at.Sub(begun))
	}
	// The right distribution misses one of the last three bounds once in 10^4 runs.
	if len(seen) < 900 || least < time.Hour || least > 61*time.Minute || most > 66*time.Minute || most < 65*time.Minute {
		t.Errorf("%d different ones from %v to %v", len(seen), least, most)
	}
	if at := (&Options{}).retirement(begun); !at.IsZero() {
		t.Errorf("without an age: %v", at)
	}
}

// TestMaxAgeOverTCP: the same for connections of an event loop. None is closed before its
// commands are answered, in however many batches.
func TestMaxAgeOverTCP(t *testing.T) {
	f := &front{}
	r := startWaiters(t, Options{MaxAge: 300 * time.Millisecond}, f)
	c := r.dial()
	var pipeline strings.Builder
	for i := range 1000 {
		pipeline.WriteString(command("LATER", fmt.Sprint(i)))
	}
	c.send(pipeline.String())
	first := receive(t, f.asked)
	for range 2 { // one after the other: when the second is closed the first is long past its age
		r.dial().expectCleanEnd("")
	}
	first.answer()
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
	c.expectCleanEnd(pipeline.String())
	await(t, "all three to be counted", func() bool { return r.server.Stats().Retired == 3 })
}

// TestAuthenticateBy: a client that does not authenticate is disconnected, however much it
// sends. One that has authenticated stays.
func TestAuthenticateBy(t *testing.T) {
	const by = 10 * time.Second
	synctest.Test(t, func(t *testing.T) {
		ln := newPipeListener()
		r := startOn(t, Options{RequireAuth: true, RequestTimeout: by}, ln)
		begun := time.Now()
		in, out := ln.dial(), ln.dial()
		fromIn, fromOut := bufio.NewReader(in), bufio.NewReader(out)
		writeAll(t, in, "AUTH yes\r\n")
		expectLine(t, fromIn, "+OK\r\n")
		for time.Since(begun) < by-time.Second {
			writeAll(t, out, "PING\r\n")
			expectLine(t, fromOut, "+PONG\r\n")
			time.Sleep(time.Second)
		}
		if _, err := io.ReadAll(fromOut); err != nil || time.Since(begun) != by {
			t.Errorf("closed after %v: %v", time.Since(begun), err)
		}
		time.Sleep(by)
		writeAll(t, in, "PING\r\n")
		expectLine(t, fromIn, "+PONG\r\n")
		if got := r.server.Stats(); got.TimedOut != 1 {
			t.Errorf("stats %+v", got)
		}
		writeAll(t, in, "AUTH no\r\n") // it has as long again
		expectLine(t, fromIn, "+OK\r\n")
		lost := time.Now()
		time.Sleep(by - time.Second)
		writeAll(t, in, "PING\r\n")
		expectLine(t, fromIn, "+PONG\r\n")
		if _, err := io.ReadAll(fromIn); err != nil || time.Since(lost) != by {
			t.Errorf("closed %v after the loss: %v", time.Since(lost), err)
		}
	})
}

// TestAuthenticateByInLoop is TestAuthenticateBy for connections of an event loop.
func TestAuthenticateByInLoop(t *testing.T) {
	r := start(t, Options{RequireAuth: true, RequestTimeout: 100 * time.Millisecond})
	in, out := r.dial(), r.dial()
	in.send(command("AUTH", "yes"))
	in.expect("+OK\r\n")
	out.ping()
	out.expectEnd("")
	in.ping()
	if got := r.server.Stats(); got.TimedOut != 1 {
		t.Errorf("stats %+v", got)
	}
}
