package linear

import (
	"slices"
	"time"
)

// maxLimits is the maximum number of limits of a plan, so that states are values.
const maxLimits = 6

// Rule is the way in which a limit counts.
type Rule uint8

// The rules. Quota stands for each algorithm with a period so long that no unit comes
// back during a history: a window, a sliding log, a token bucket that gains a unit an
// hour.
const (
	Quota Rule = iota
	Paced      // a token bucket that gains units during a history
	Slots      // concurrency
)

// Limit is a limit that counts by tenant.
type Limit struct {
	ID       string
	Rule     Rule
	Capacity int64
	// Every is the time in which a Paced limit gains a unit, in whole microseconds.
	Every time.Duration
	// Ops are the ops to which the limit applies; none means all.
	Ops []string
}

// every is Every in microseconds.
func (l *Limit) every() int64 { return l.Every.Microseconds() }

// Plan is the limits of a tenant in the order of their file, each in a group of its own.
// There are at most maxLimits.
type Plan []Limit

// applies reports whether limit i applies to a call.
func (p Plan) applies(i int, c *Call) bool {
	l := &p[i]
	if l.Rule == Slots && c.Kind != Acquire {
		return false
	}
	return len(l.Ops) == 0 || slices.Contains(l.Ops, c.Op)
}

// Has reports whether there is a limit with an id.
func (p Plan) Has(id string) bool { return p.index(id) >= 0 }

// index returns the index of the limit with an id, -1 if there is none.
func (p Plan) index(id string) int {
	return slices.IndexFunc(p, func(l Limit) bool { return l.ID == id })
}
