package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

var errEnough = errors.New("said enough")

// says returns a behaviour that writes text instead of a reply. Then it goes on, or hangs
// up if the text ends in "!".
func says(text string) func(net.Conn, []string) error {
	text, hangUp := strings.CutSuffix(text, "!")
	return func(c net.Conn, _ []string) error {
		_, err := io.WriteString(c, text)
		if hangUp {
			return errEnough
		}
		return err
	}
}

// saysForEver repeats a text until the connection is closed.
func saysForEver(begin, text string) func(net.Conn, []string) error {
	block := strings.Repeat(text, 1+(64<<10)/len(text))
	return func(c net.Conn, _ []string) error {
		_, err := io.WriteString(c, begin)
		for err == nil {
			_, err = io.WriteString(c, block)
		}
		return err
	}
}

// noise writes some random bytes.
func noise(c net.Conn, _ []string) error {
	b := make([]byte, 300)
	for i := range b {
		b[i] = byte(rand.IntN(256))
	}
	_, err := c.Write(b)
	return err
}

// drip writes bytes that might become a reply, one by one.
func drip(c net.Conn, _ []string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for _, b := range []byte("*3\r\n:1700000000000000\r\n:000000000000000001\r\n:1\r\n") {
		<-tick.C
		if _, err := c.Write([]byte{b}); err != nil {
			return err
		}
	}
	return nil
}

// garbage holds behaviours of a server instead of a reply to a script call.
var garbage = map[string]func(net.Conn, []string) error{
	"nothing":            says(""),
	"hangs up":           says("!"),
	"noise":              noise,
	"a greeting":         says("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n!"),
	"half a reply":       says("*2\r\n:1700000000000000\r\n:1"),
	"half, hangs up":     says("*2\r\n:1700000000000000\r\n:1!"),
	"drip":               drip,
	"an empty array":     says("*0\r\n"),
	"a null array":       says("*-1\r\n"),
	"time alone":         says("*1\r\n:1700000000000000\r\n"),
	"too much":           says("*9\r\n:1700000000000000" + strings.Repeat("\r\n:7", 8) + "\r\n"),
	"far too much":       says("*1000\r\n:1700000000000000" + strings.Repeat("\r\n:7", 999) + "\r\n"),
	"twice":              says(strings.Repeat("*2\r\n:1700000000000000\r\n:1\r\n", 2)),
	"a huge array":       says("*1048576\r\n:1\r\n"),
	"a huger array":      says("*999999999999999999\r\n"),
	"a huge text":        says("*2\r\n:1\r\n$999999999999\r\n"),
	"a negative text":    says("*2\r\n:1\r\n$-2\r\n"),
	"huge numbers":       says("*2\r\n:999999999999999999\r\n:999999999999999999\r\n"),
	"negative numbers":   says("*2\r\n:-999999999999999999\r\n:-999999999999999999\r\n"),
	"no numbers":         says("*2\r\n:\r\n:-\r\n"),
	"an error":           says("-ERR no\r\n"),
	"errors inside":      says("*2\r\n:1700000000000000\r\n-ERR no\r\n"),
	"no script, ever":    says("-NOSCRIPT no\r\n"),
	"a line without end": saysForEver("-", "x"),
	"numbers for ever":   saysForEver("*1000000\r\n", ":1\r\n"),
	"arrays for ever":    saysForEver("", "*1\r\n"),
	"errors for ever":    saysForEver("", "-NOSCRIPT\r\n"),
	"texts for ever":     saysForEver("*1000000\r\n:1\r\n", "$1\r\nx\r\n"),
}

// badGreetings are replies of a server to the script in the handshake.
var badGreetings = map[string]string{
	"an error":         "-ERR no\r\n",
	"deep arrays":      strings.Repeat("*1\r\n", 1<<20),
	"wide arrays":      strings.Repeat("*4096\r\n", 1<<20),
	"many words":       strings.Repeat("*4096\r\n"+strings.Repeat("$-1\r\n", 4095), 300),
	"large words":      "*4096\r\n" + strings.Repeat("$60000\r\n"+strings.Repeat("x", 60000)+"\r\n", 200),
	"a negative array": "*-9\r\n",
	"nonsense":         "what?\r\n",
}

// TestBadGreeting checks that a server with a bad handshake stays unused.
func TestBadGreeting(t *testing.T) {
	for name, text := range badGreetings {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			f := startFake(t, []byte(text), says("+what?\r\n"))
			defer f.close()
			abuse(t, f)
		})
	}
}

// TestGarbage checks that whatever a server replies, all callers get a decision by the
// deadline, and no memory or goroutines leak.
func TestGarbage(t *testing.T) {
	for name, run := range garbage {
		t.Run(name, func(t *testing.T) {
			defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
			f := startFake(t, nil, run)
			defer f.close()
			abuse(t, f)
			if f.runs.Load() == 0 {
				t.Error("nothing was asked")
			}
		})
	}
}

// abuseDeadline is the deadline of the decisions in abuse. abuseSlack is the allowance for
// a busy machine, beside its stalls.
const (
	abuseDeadline = 60 * time.Millisecond
	abuseSlack    = 200 * time.Millisecond
	abuseMemory   = 32 << 20
)

// abuse makes decisions on a fake, and checks that they arrive.
func abuse(t *testing.T, f *fake) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := Open(ctx, Options{Addrs: []string{f.addr()}, IOTimeout: 30 * time.Millisecond, ToLoop: toLoop})
	if err != nil {
		t.Fatal(err)
	}
	running, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { _ = s.Run(running) })
	peak := watchMemory(running, &wg)
	askFake(t, f, s)
	stop()
	wg.Wait()
	_ = s.Close()
	if n := <-peak; n > abuseMemory {
		t.Errorf("memory grew by %d bytes", n)
	}
}

// askFake makes decisions from several connections, and some more if the fake is detected
// quickly.
func askFake(t *testing.T, f *fake, s *Store) {
	t.Helper()
	set := compile(t, spec{ID: "bucket", By: []string{"tenant"}, Rate: "100/s"}, spec{ID: "window", By: []string{"tenant", "op"}, Rate: "100/m", Algorithm: "sliding_window"})
	l := limiter.New(limiter.Options{Store: s, Backstop: &refuser{asked: map[string]int{}}, Addrs: testAddrs, Timeout: abuseDeadline}, set)
	var (
		wg      sync.WaitGroup
		mu      sync.Mutex // guards slowest
		slowest time.Duration
	)
	stalled := watchStalls(t)
	for g := range 4 {
		wg.Go(func() {
			var b limiter.Batch
			for i := 0; i < 3 || i < 100 && f.runs.Load() < 8; i++ {
				b.Reset()
				for j := range 8 {
					b.Requests = append(b.Requests, limit.Request{Tenant: fmt.Sprint("t", (g+j)%5), Op: strings.Repeat("a", i*j%2), Cost: 1})
				}
				began := time.Now()
				l.Decide(&b)
				mu.Lock()
				slowest = max(slowest, time.Since(began))
				mu.Unlock()
				for _, d := range b.Decisions {
					if d.Source != limit.SourceStore && d.Source != limit.SourceBackstop {
						t.Errorf("decided by %s: %+v", d.Source, d)
					}
				}
			}
		})
	}
	wg.Wait()
	stall := stalled()
	if slowest > abuseDeadline+abuseSlack+3*stall {
		t.Errorf("a decision took %s, its deadline is %s, and the machine stalled for %s at most", slowest, abuseDeadline, stall)
	}
}

// watchMemory measures the growth of the memory in use until ctx ends.
func watchMemory(ctx context.Context, wg *sync.WaitGroup) <-chan int64 {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse + m.StackInuse)
	}
	runtime.GC()
	before := inUse()
	grown := make(chan int64, 1)
	wg.Go(func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		most := int64(0)
		for ctx.Err() == nil {
			n := inUse() - before
			if n > abuseMemory { // some of it may be garbage
				runtime.GC()
				n = inUse() - before
			}
			most = max(most, n)
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		grown <- most
	})
	return grown
}

// TestHangingUp checks that a server which closes every connection at once is not dialed in
// a storm.
func TestHangingUp(t *testing.T) {
	for name, greeting := range map[string]string{
		"when greeted": "!",
		"afterwards":   usual["SCRIPT"] + "+and what is more\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := startFake(t, []byte(greeting), says("!"))
			defer f.close()
			s, err := Open(t.Context(), Options{Addrs: []string{f.addr()}, ReloadInterval: time.Hour, ToLoop: toLoop})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer cancel()
			_ = s.Run(ctx)
			_ = s.Close()
			// Without any pause there are thousands.
			if n := f.dialed.Load(); n > 40 {
				t.Errorf("%d connections were made in 300 ms", n)
			}
		})
	}
}

// TestHandshakeOfLimitgate checks that the log names a node that is a limitgate, instead of the command
// that it does not know.
func TestHandshakeOfLimitgate(t *testing.T) {
	f := startFake(t, []byte("-ERR unknown command 'SCRIPT' ; Limitgate keeps no data, channels or scripts\r\n"), says("!"))
	o := Options{Addrs: []string{f.addr()}, ReloadInterval: time.Hour, ToLoop: toLoop}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	want := "handshake with " + f.addr() + ": it is a limitgate, not a Redis: name the nodes that its own --redis names"
	if _, err := s.newDialer(f.addr(), false).dial(t.Context()); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if err := explained(io.EOF); !errors.Is(err, io.EOF) {
		t.Errorf("another error: %v", err)
	}
	if err := explained(errors.New("ERR unknown command 'getex', with args beginning with: 'lg:secret' ; Limitgate keeps no data, channels or scripts")); !errors.Is(err, errLimitgate) {
		t.Errorf("the secret of a limitgate: %v", err)
	}
}
