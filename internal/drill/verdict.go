package drill

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// Verdict is the result of a run.
type Verdict struct {
	Passed bool `json:"passed"`
	Tally
	// Answered is the number of checks that got a decision.
	Answered int `json:"answered"`
	// Without is the longest time without a decision by the store, in milliseconds.
	Without float64 `json:"longest_without_store_ms"`
	// Back is the time from the begin of the recovery until the store decided again, in
	// milliseconds. It is nil if the store did not.
	Back *float64 `json:"store_back_after_ms"`
	// Within is the bound of Back.
	Within float64 `json:"within_ms"`
	// Problems are the reasons why the drill failed.
	Problems []string `json:"problems,omitempty"`
}

// verdict returns the result of a run whose recovery began at a time and had an error or none.
func (r *runner) verdict(began time.Time, recovered error) *Verdict {
	v := &Verdict{
		Tally: r.all, Answered: r.all.Checks - r.all.Errors,
		Without: millis(r.absence.until(time.Now())), Within: millis(r.Within),
	}
	late := true
	if back := r.absence.back; !back.IsZero() {
		v.Back = new(millis(back.Sub(began)))
		late = back.Sub(began) > r.Within
	}
	problem := func(format string, args ...any) { v.Problems = append(v.Problems, fmt.Sprintf(format, args...)) }
	if recovered != nil {
		problem("%v", recovered)
	}
	if r.first != nil {
		problem("%d of %d checks got no decision, the first one: %v", r.all.Errors, r.all.Checks, r.first)
	}
	if r.outage.without() == 0 {
		problem("no check was decided without the store: the outage did not reach the limitgate")
	}
	if late {
		problem("the store did not decide again within %v", r.Within)
	}
	v.Passed = len(v.Problems) == 0
	return v
}

// Write writes the verdict for people.
func (v *Verdict) Write(w io.Writer) error {
	var b strings.Builder
	back := "never"
	if v.Back != nil {
		back = fmt.Sprintf("%.0f ms after the recovery began, from then on for a second without a break", *v.Back)
	}
	fmt.Fprintf(&b, "\nchecks with a decision      %d of %d, the slowest in %.1f ms\n", v.Answered, v.Checks, v.Slowest)
	fmt.Fprintf(&b, "decided by                  %s\n", v.sources())
	fmt.Fprintf(&b, "longest without the store   %.0f ms\n", v.Without)
	fmt.Fprintf(&b, "the store decided again     %s, %.0f ms are allowed\n", back, v.Within)
	for _, p := range v.Problems {
		fmt.Fprintf(&b, "problem                     %s\n", p)
	}
	if v.Passed {
		b.WriteString("passed\n")
	} else {
		b.WriteString("failed\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
