package integration

import (
	"strings"
	"testing"
)

// TestReplayAllows: a limit with action: allow counts no requests, and has no row that says so of a request.
func TestReplayAllows(t *testing.T) {
	file := writeLimits(t, `
version: 1
shared:
  - {id: ip, by: [ip], rate: 1000/m}
  - {id: exempt, by: [ip], when: {ip: 198.18.0.0/16}, action: allow}
`)
	out, _, code := run(t, nil, "replay", "--limits", file, accessLog(t, 50))
	if code != 0 || !strings.Contains(out, "\nNot counted, as their action is allow: exempt\n") || strings.Count(out, "exempt") != 1 || !strings.Contains(out, "  ip ") {
		t.Errorf("exit %d:\n%s", code, out)
	}
}
