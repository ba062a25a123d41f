package proxy

import "time"

// lookBurst and looksPerSecond bound the requests that are compared with limits: each comparison is part of a decision, of up to 30 us. They
// are for all plans and sets together, as each request has its chance once the burst is used up: one busy tenant does not keep the
// mistakes of others out of the log.
const (
	lookBurst      = 1000
	looksPerSecond = 10
)

// lookBudget is a number of looks at requests; the zero value has all of the burst. It is not safe for concurrent use.
type lookBudget struct {
	left float64
	at   time.Time // of the last look
}

// take reports whether one more request may be looked at, and counts it if so.
func (b *lookBudget) take(now time.Time) bool {
	elapsed := max(0, now.Sub(b.at)) // the clock may be set back
	b.left, b.at = min(lookBurst, b.left+looksPerSecond*elapsed.Seconds()), now
	if b.left < 1 {
		return false
	}
	b.left--
	return true
}
