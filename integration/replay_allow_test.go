package integration

import (
	"strings"
	"testing"
)

// TestReplayAllows: limits with action: allow, and those of concurrency, count no requests, and have no rows that say so of a
// request.
func TestReplayAllows(t *testing.T) {
	file := writeLimits(t, `
version: 1
default_plan: p
plans: {p: [{id: jobs, by: [tenant], algorithm: concurrency, slots: 2}]}
shared:
  - {id: ip, by: [ip], rate: 1000/m}
  - {id: exempt, by: [ip], when: {ip: 198.18.0.0/16}, action: allow}
`)
	out, _, code := run(t, nil, "replay", "--limits", file, accessLog(t, 50))
	if code != 0 || !strings.Contains(out, "\nNot counted, as their action is allow: exempt\n") || strings.Count(out, "exempt") != 1 ||
		!strings.Contains(out, "\nNot counted, as a log has no slots that requests hold: jobs\n") || strings.Count(out, "jobs") != 1 || !strings.Contains(out, "  ip ") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}
