package emf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/internal/emf/emftest"
)

// counted is a snapshot that a test adds to, and the lines that are made of it.
type counted struct {
	mu    sync.Mutex // guards the fields below
	s     Snapshot
	ahead time.Duration // of the clock
	out   bytes.Buffer
}

// Write takes lines.
func (c *counted) Write(lines []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(lines)
}

// lines returns the lines since the last call.
func (c *counted) lines(t *testing.T) []emftest.Line {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.out.Reset()
	return emftest.CheckAll(t, c.out.String())
}

// now is a clock.
func (c *counted) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// advance changes the clock.
func (c *counted) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// add counts allowed decisions of a limit.
func (c *counted) add(id string, n int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.s.Totals.Decisions += n
	for i := range c.s.Limits {
		if l := &c.s.Limits[i]; l.ID == id {
			l.Counts.Allowed += n
			l.Counts.Sources = map[string]int64{"store": l.Counts.Allowed}
			return
		}
	}
	c.s.Limits = append(c.s.Limits, Limit{ID: id, Counts: Counts{Allowed: n, Sources: map[string]int64{"store": n}}})
}

// snapshot returns a copy.
func (c *counted) snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.s
	s.Limits = append([]Limit(nil), s.Limits...)
	return s
}

// start runs a writer, and returns a function that ends it.
func start(t *testing.T, w *Writer) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestSeconds checks that each second has its lines with what was counted in it, a pause of several
// seconds one line for all of them, and the end the rest.
func TestSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counted
		w := New(Options{
			Service: "s", Snapshot: c.snapshot, Sink: NewStream(&c), Log: slog.New(slog.DiscardHandler),
			Now: c.now,
		})
		c.s.DecisionP99 = 99
		begin := time.Now() // at the beginning of a second
		time.Sleep(300 * time.Millisecond)
		end := start(t, w)
		step := func(second int, decisions, limits int) {
			t.Helper()
			synctest.Wait()
			lines := c.lines(t)
			if n := emftest.Sum(lines, "", "Decisions"); n != float64(decisions) || len(lines) != 1+limits {
				t.Fatalf("%v decisions in %d lines, want %d in %d", n, len(lines), decisions, 1+limits)
			}
			for _, l := range lines {
				if want := begin.Add(time.Duration(second) * time.Second); !l.Time.Equal(want) {
					t.Errorf("%v, want the time %s", l, want)
				}
			}
			if p99 := lines[0].Metrics["DecisionP99"]; len(p99) != 1 || p99[0] != 99 || lines[0].Units["DecisionP99"] != "Milliseconds" {
				t.Errorf("DecisionP99 is %v", p99)
			}
		}
		c.add("a", 3)
		time.Sleep(700 * time.Millisecond)
		step(0, 3, 1)
		time.Sleep(time.Second)
		step(1, 0, 0)
		c.add("a", 1)
		c.add("b", 2)
		c.advance(5 * time.Second) // as if the process had been stopped
		time.Sleep(time.Second)
		step(7, 3, 2)
		c.add("b", 4)
		time.Sleep(time.Second)
		step(8, 4, 1)
		c.add("a", 5)
		time.Sleep(200 * time.Millisecond)
		end()
		step(9, 5, 1)
		if w.Lost() != 0 {
			t.Errorf("%d lines are lost", w.Lost())
		}
	})
}

// TestClockAdjusted checks that each second has one line, with its own time, although the clock runs
// slower than the timers.
func TestClockAdjusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c counted
		begin := time.Now()
		w := New(Options{
			Service: "s", Snapshot: c.snapshot, Sink: NewStream(&c), Log: slog.New(slog.DiscardHandler),
			Now: func() time.Time { return begin.Add(time.Since(begin) * 999 / 1000) },
		})
		end := start(t, w)
		time.Sleep(time.Minute)
		end()
		seen := map[time.Time]bool{}
		lines := c.lines(t)
		if !lines[0].Time.Equal(begin) {
			t.Errorf("the first line is of %s, want %s", lines[0].Time, begin)
		}
		for _, l := range lines {
			if seen[l.Time] {
				t.Errorf("two lines of %s", l.Time)
			}
			seen[l.Time] = true
		}
		if len(seen) < 59 {
			t.Errorf("%d lines in a minute", len(seen))
		}
	})
}

// TestNoReader checks that a sink that takes nothing holds up neither counting nor the end, that the
// memory for its lines is bounded, and that lines are lost whole and counted.
func TestNoReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader, pipe := io.Pipe()
		var c counted
		w := New(Options{Service: "s", Snapshot: c.snapshot, Sink: NewStream(pipe), Log: slog.New(slog.DiscardHandler)})
		end := start(t, w)
		w.queue.most = 1 << 20
		const seconds, limits = 60, 100
		for range seconds {
			for i := range limits {
				c.add(fmt.Sprintf("limit-%d", i), 1)
			}
			time.Sleep(time.Second)
			synctest.Wait()
			if n := w.queue.queued(); n > w.queue.most {
				t.Fatalf("%d bytes are queued", n)
			}
		}
		lost := w.Lost()
		if lost == 0 || w.queue.queued() < w.queue.most/2 {
			t.Fatalf("%d lines are lost, and %d bytes queued", lost, w.queue.queued())
		}
		var text strings.Builder
		read := make(chan struct{})
		go func() {
			defer close(read)
			_, _ = io.Copy(&text, reader)
		}()
		end()
		_ = pipe.Close()
		<-read
		// The end may add the line of the rest of a second.
		if lines := int64(len(emftest.CheckAll(t, text.String()))); w.Lost() != lost || lines+lost < seconds*(limits+1) || lines+lost > seconds*(limits+1)+1 {
			t.Errorf("%d lines are written and %d lost, before the end %d", lines, w.Lost(), lost)
		}
	})
}

// TestEnd checks that the end waits a moment for a sink that takes nothing, not at all for one that
// fails, and that the lines of both count as lost.
func TestEnd(t *testing.T) {
	for name, test := range map[string]struct {
		sink func() (Sink, func())
		took time.Duration
	}{
		"takes nothing": {func() (Sink, func()) {
			reader, pipe := io.Pipe()
			return NewStream(pipe), func() { _ = reader.Close() }
		}, flushTime},
		"fails": {func() (Sink, func()) { return failing{}, func() {} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sink, release := test.sink()
				var c counted
				w := New(Options{Service: "s", Snapshot: c.snapshot, Sink: sink, Log: slog.New(slog.DiscardHandler)})
				end := start(t, w)
				c.add("a", 1)
				time.Sleep(1500 * time.Millisecond)
				begin := time.Now()
				end()
				if took := time.Since(begin); took != test.took {
					t.Errorf("the end took %s", took)
				}
				if w.Lost() != 3 { // two of the first second, and one of the rest
					t.Errorf("%d lines are lost", w.Lost())
				}
				release()
			})
		})
	}
}

// failing is a sink that takes nothing.
type failing struct{}

func (failing) Write(context.Context, []byte) (int, error) { return 0, errors.New("no space left") }

func (failing) Close() error { return nil }
