package accesslog

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
)

const (
	redrawInterval = 100 * time.Millisecond

	// maxColumns is the width of the bar's line. A line as wide as the
	// terminal would wrap on some, and every redraw then leaves one behind.
	maxColumns = 79

	// barColumns is the width of the bar between its brackets.
	barColumns = 20
)

// Progress draws the progress of reading a log in one line of a terminal:
//
//	42% [========            ]  1,234,567 lines  98,765/s  ETA 1m05s
//
// Its methods are for one goroutine, which must be the only writer to the
// terminal between the first Update and Finish.
type Progress struct {
	w     io.Writer // nil when nothing is to be drawn, or no more.
	total int64
	now   func() time.Time

	start time.Time // When NewProgress was called.
	last  time.Time // When the line was drawn last.
	width int       // The columns of the line on the terminal, 0 for no line.
}

// NewProgress returns a Progress that draws on w, and nothing at all unless
// isTerminal (see [IsTerminal]). The total is the size of the log in bytes as
// [Reader.BytesRead] counts them; without one, 0 or less, there is neither a
// percentage nor a bar nor an ETA. The time is from now, such as time.Now, and
// begins to run at once.
func NewProgress(w io.Writer, isTerminal bool, total int64, now func() time.Time) *Progress {
	p := &Progress{total: total, now: now, start: now()}
	if isTerminal {
		p.w = w
	}
	return p
}

// Update records the bytes and lines of the log read so far, and redraws the line unless
// it did so in the last 100 ms. It is cheap enough to call for every line of the log.
// After a failed write it stops drawing silently, because the replay matters more than
// its bar.
func (p *Progress) Update(bytesRead, lines int64) {
	if t := p.now(); p.isDue(t) {
		p.draw(p.text(bytesRead, lines, t.Sub(p.start)))
	}
}

// UpdatePaced does the same for requests that are sent at the pace of the log, so that the bytes read are far ahead:
// requests is their number so far, and at the log's time.
func (p *Progress) UpdatePaced(requests int64, at time.Time) {
	if p.isDue(p.now()) {
		p.draw(withCommas(requests) + " requests  the log is at " + at.UTC().Format(time.DateTime) + " UTC")
	}
}

// isDue reports whether the line is to be drawn, and records that it is.
func (p *Progress) isDue(t time.Time) bool {
	if p.w == nil || p.width > 0 && t.Sub(p.last) < redrawInterval {
		return false
	}
	p.last = t
	return true
}

// Finish clears the line, so that the next output begins at its left end.
// Nothing is drawn after Finish. It may be called more than once.
func (p *Progress) Finish() {
	if p.w != nil && p.width > 0 {
		// The error is ignored: Progress writes nothing after it.
		_, _ = io.WriteString(p.w, "\r"+strings.Repeat(" ", p.width)+"\r")
	}
	p.w = nil
}

// draw replaces the line on the terminal by text. Blanks over the rest of the
// old line work on every terminal, an escape sequence does not.
func (p *Progress) draw(text string) {
	text = text[:min(len(text), maxColumns)]
	blanks := strings.Repeat(" ", max(p.width-len(text), 0))
	p.width = len(text)
	if _, err := io.WriteString(p.w, "\r"+text+blanks); err != nil {
		p.w = nil
	}
}

// text is the line, in ASCII.
func (p *Progress) text(bytesRead, lines int64, elapsed time.Duration) string {
	counts := withCommas(lines) + " lines"
	if elapsed > 0 {
		counts += "  " + withCommas(int64(float64(lines)/elapsed.Seconds())) + "/s"
	}
	if p.total <= 0 {
		return counts
	}
	done := min(max(float64(bytesRead)/float64(p.total), 0), 1)
	bar := strings.Repeat("=", int(done*barColumns))
	line := fmt.Sprintf("%3d%% [%-*s]  %s", int(done*100), barColumns, bar, counts)
	if done > 0 && elapsed > 0 {
		line += "  ETA " + shortDuration(elapsed.Seconds()*(1-done)/done)
	}
	return line
}

// withCommas is n, not negative, with a comma before every three digits.
func withCommas(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// shortDuration is a number of seconds as 5s, 1m05s or 2h07m.
func shortDuration(seconds float64) string {
	const limit = 100 * 3600
	if seconds >= limit { // Also keeps the conversion below in range.
		return ">99h"
	}
	s := int(seconds + 0.5)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	default:
		return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
	}
}
