package accesslog

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// handClock is a clock that a test moves.
type handClock struct{ t time.Time }

func (c *handClock) now() time.Time { return c.t }

// screen is a terminal of one line; it counts the writes.
type screen struct {
	line   []byte
	column int
	widest int
	writes int
}

func (s *screen) Write(p []byte) (int, error) {
	s.writes++
	for _, c := range p {
		if c == '\r' {
			s.column = 0
			continue
		}
		if s.column == len(s.line) {
			s.line = append(s.line, ' ')
		}
		s.line[s.column] = c
		s.column++
		s.widest = max(s.widest, s.column)
	}
	return len(p), nil
}

func (s *screen) text() string { return strings.TrimRight(string(s.line), " ") }

func TestProgressDrawsOneLine(t *testing.T) {
	clock, term := &handClock{atNoon}, &screen{}
	p := NewProgress(term, true, 1000, clock.now)
	tests := []struct {
		after        time.Duration
		bytes, lines int64
		want         string
	}{
		{0, 0, 0, "  0% [                    ]  0 lines"},
		{10 * time.Second, 100, 12345, " 10% [==                  ]  12,345 lines  1,234/s  ETA 1m30s"},
		{20 * time.Second, 500, 2000000, " 50% [==========          ]  2,000,000 lines  100,000/s  ETA 20s"},
		{21 * time.Second, 999, 2000000, " 99% [=================== ]  2,000,000 lines  95,238/s  ETA 0s"},
		{22 * time.Second, 1000, 2, "100% [====================]  2 lines  0/s  ETA 0s"},
		{23 * time.Second, 2000, 2, "100% [====================]  2 lines  0/s  ETA 0s"},
	}
	for _, tt := range tests {
		clock.t = atNoon.Add(tt.after)
		p.Update(tt.bytes, tt.lines)
		if got := term.text(); got != tt.want {
			t.Errorf("after %v the line is\n%q, want\n%q", tt.after, got, tt.want)
		}
	}
}

func TestProgressOfUnknownTotalHasNoBar(t *testing.T) {
	clock, term := &handClock{atNoon}, &screen{}
	p := NewProgress(term, true, 0, clock.now)
	clock.t = clock.t.Add(2 * time.Second)
	p.Update(12345, 3000)
	if want := "3,000 lines  1,500/s"; term.text() != want {
		t.Errorf("the line is %q, want %q", term.text(), want)
	}
}

func TestProgressRedrawsTenTimesASecond(t *testing.T) {
	clock, term := &handClock{atNoon}, &screen{}
	p := NewProgress(term, true, 1000, clock.now)
	for range 20000 {
		clock.t = clock.t.Add(time.Millisecond)
		p.Update(1, 1)
	}
	if term.writes != 200 {
		t.Errorf("20,000 updates in 20 s draw %d times, want 200", term.writes)
	}
}

func TestProgressFitsTheTerminal(t *testing.T) {
	clock, term := &handClock{atNoon}, &screen{}
	p := NewProgress(term, true, 1<<62, clock.now)
	for range 10 {
		clock.t = clock.t.Add(time.Second)
		p.Update(1, 1<<62)
	}
	if term.widest > maxColumns {
		t.Errorf("the line is %d columns wide, want at most %d", term.widest, maxColumns)
	}
}

func TestProgressFinishClearsTheLine(t *testing.T) {
	clock, term := &handClock{atNoon}, &screen{}
	p := NewProgress(term, true, 1000, clock.now)
	p.Update(500, 10)
	p.Finish()
	if term.text() != "" || term.column != 0 {
		t.Errorf("after Finish the line is %q and the cursor in column %d", term.text(), term.column)
	}
	writes := term.writes
	clock.t = clock.t.Add(time.Minute)
	p.Update(600, 20)
	p.Finish()
	if term.writes != writes {
		t.Errorf("after Finish %d more writes are made", term.writes-writes)
	}
}

func TestProgressDrawsNothingWhenNotATerminal(t *testing.T) {
	clock, file := &handClock{atNoon}, &screen{}
	p := NewProgress(file, false, 1000, clock.now)
	p.Update(500, 10)
	p.Finish()

	term := &screen{}
	NewProgress(term, true, 1000, clock.now).Finish() // Before any Update.
	if file.writes != 0 || term.writes != 0 {
		t.Errorf("%d writes to a file and %d to a terminal without a line, want none", file.writes, term.writes)
	}
}

// goneTerminal fails and counts how often.
type goneTerminal struct{ writes int }

func (g *goneTerminal) Write([]byte) (int, error) {
	g.writes++
	return 0, errors.New("input/output error")
}

func TestProgressGivesUpATerminalThatFails(t *testing.T) {
	clock, term := &handClock{atNoon}, &goneTerminal{}
	p := NewProgress(term, true, 1000, clock.now)
	for range 5 {
		clock.t = clock.t.Add(time.Second)
		p.Update(1, 1)
	}
	p.Finish()
	if term.writes != 1 {
		t.Errorf("%d writes to a terminal that fails, want 1", term.writes)
	}
}

func TestShortDuration(t *testing.T) {
	for seconds, want := range map[float64]string{
		0: "0s", 0.4: "0s", 59.4: "59s", 59.6: "1m00s", 65: "1m05s", 3599: "59m59s", 7620: "2h07m", 359999: "99h59m", 360000: ">99h", 1e300: ">99h",
	} {
		if got := shortDuration(seconds); got != want {
			t.Errorf("shortDuration(%v) = %s, want %s", seconds, got, want)
		}
	}
}

// TestProgressPaced: at the pace of the log the line has the requests sent and the time of the log.
func TestProgressPaced(t *testing.T) {
	clock, term := &handClock{atNoon}, &screen{}
	p := NewProgress(term, true, 1000, clock.now)
	p.UpdatePaced(0, atNoon)
	p.UpdatePaced(7, atNoon.Add(time.Minute)) // too soon
	clock.t = clock.t.Add(redrawInterval)
	p.UpdatePaced(1234, atNoon.Add(time.Hour))
	if got, want := term.text(), "1,234 requests  the log is at "+atNoon.Add(time.Hour).UTC().Format(time.DateTime)+" UTC"; got != want || term.writes != 2 {
		t.Errorf("%d writes, %q, want %q", term.writes, got, want)
	}
}
