package drill

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Answer is the decision of one check.
type Answer struct {
	Admitted bool
	// Source is the part of the limitgate that decided.
	Source string
}

// The sources that a drill distinguishes. Others, such as the deny cache, prove nothing of the store.
const (
	sourceStore    = "store"
	sourceBackstop = "backstop"
	sourcePolicy   = "policy"
)

// Tally is what became of some checks.
type Tally struct {
	Checks   int            `json:"checks"`
	Admitted int            `json:"admitted"`
	Denied   int            `json:"denied"`
	Errors   int            `json:"errors"`
	Sources  map[string]int `json:"sources"`
	// Slowest is the longest time that a check took, in milliseconds.
	Slowest float64 `json:"slowest_ms"`
}

// add counts a check.
func (t *Tally) add(a Answer, err error, took time.Duration) {
	t.Checks++
	t.Slowest = max(t.Slowest, millis(took))
	if err != nil {
		t.Errors++
		return
	}
	if a.Admitted {
		t.Admitted++
	} else {
		t.Denied++
	}
	if t.Sources == nil {
		t.Sources = map[string]int{}
	}
	t.Sources[a.Source]++
}

// without returns the decisions that were made without the store.
func (t *Tally) without() int { return t.Sources[sourceBackstop] + t.Sources[sourcePolicy] }

// sources returns the sources with their numbers, for people.
func (t *Tally) sources() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(t.Sources)) {
		all = append(all, fmt.Sprintf("%s %d", name, t.Sources[name]))
	}
	return strings.Join(all, ", ")
}

// millis returns a duration in milliseconds, with three digits behind the point.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// The phases of a run.
const (
	PhaseBefore   = "before"
	PhaseOutage   = "outage"
	PhaseRecovery = "recovery"
)

// Line is what happened in a second.
type Line struct {
	Second int    `json:"second"`
	Phase  string `json:"phase"` // at its end
	Tally
	// State is that of the breakers, if it is known.
	State string `json:"state,omitempty"`
}

const lineFormat = "%6s  %-8s  %6s  %8s  %6s  %6s  %9s  %s\n"

// Header returns the names of the columns of lines.
func Header() string {
	return fmt.Sprintf(lineFormat, "SECOND", "PHASE", "CHECKS", "ADMITTED", "DENIED", "ERRORS", "SLOWEST", "SOURCES")
}

// String returns the line for people, below the header.
func (l *Line) String() string {
	n := func(i int) string { return fmt.Sprint(i) }
	rest := l.sources()
	if l.State != "" {
		rest += "; " + l.State
	}
	return fmt.Sprintf(lineFormat, n(l.Second), l.Phase, n(l.Checks), n(l.Admitted), n(l.Denied), n(l.Errors), fmt.Sprintf("%.1f ms", l.Slowest), rest)
}
