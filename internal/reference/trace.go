package reference

import (
	"fmt"
	"strings"
)

// account is the trace of a decision.
type account struct {
	now      int64
	request  Request
	command  command
	all      []*considered
	asked    []*asked
	repeated bool
	decision Decision
}

// Trace returns a description of the last decision: each limit that was considered, its
// bucket, the bucket's content, and its verdict.
func (m *Model) Trace() string {
	var t strings.Builder
	last := m.last
	fmt.Fprintf(&t, "%s %+v at %d µs\n", last.command, last.request, last.now)
	for _, c := range last.all {
		fmt.Fprintf(&t, "  %s: %s\n", c.id, last.verdict(c))
	}
	if last.repeated {
		t.WriteString("  the answer is that of the same request before\n")
	}
	fmt.Fprintf(&t, "  %+v\n", last.decision)
	return t.String()
}

// verdict describes the fate of a limit.
func (a *account) verdict(c *considered) string {
	role := ""
	if c.shadow {
		role = "shadow, "
	}
	switch {
	case !c.applies():
		return "passed over: " + c.fate
	case c.action != "":
		return role + "action " + c.action
	}
	for _, b := range a.asked {
		if b.considered != c {
			continue
		}
		verdict := "admits"
		if !b.fits {
			verdict = fmt.Sprintf("denies for %d ms", b.wait)
		}
		return fmt.Sprintf("%s%s %d units of %s, which has %s of %d",
			role, verdict, b.units, c.key, b.before.RatString(), c.terms.capacity)
	}
	return role + "applies, and its bucket is not asked; missing " + c.lacks
}
