package main

import (
	"strings"
	"testing"
)

// TestPrintLimits: only limits of a file of the user have lines.
func TestPrintLimits(t *testing.T) {
	for source, want := range map[string]string{
		"limits.yaml":       "LIMIT  FROM       LEVEL   WHEN  RATE  ALGORITHM     MODE     ON_ERROR  LINE\na      plan free  tenant        1/s   token_bucket  enforce  open      7\n",
		"dynamodb://limits": "LIMIT  FROM       LEVEL   WHEN  RATE  ALGORITHM     MODE     ON_ERROR\na      plan free  tenant        1/s   token_bucket  enforce  open\n",
		"built-in sample":   "LIMIT  FROM       LEVEL   WHEN  RATE  ALGORITHM     MODE     ON_ERROR\na      plan free  tenant        1/s   token_bucket  enforce  open\n",
	} {
		var b strings.Builder
		row := map[string]any{"id": "a", "from": "plan free", "level": "tenant", "rate": "1/s", "algorithm": "token_bucket", "mode": "enforce", "on_error": "open", "line": "7"}
		printLimits(&b, nil, map[string]any{"version": "v", "source": source, "limits": []any{row}})
		if got := b.String(); got != "limits version v, from "+source+"\n"+want {
			t.Errorf("%s:\n%s", source, got)
		}
	}
}

// TestExplanationWithoutStore: limits that the store did not decide are marked, and one that fails closed
// is not shown as used up.
func TestExplanationWithoutStore(t *testing.T) {
	row := func(id, source, remaining string) map[string]any {
		return map[string]any{"id": id, "applies": "1", "level": "tenant", "rate": "5/m", "algorithm": "token_bucket", "capacity": "5", "remaining": remaining, "source": source, "node": "127.0.0.1:1"}
	}
	for source, want := range map[string]string{
		"policy":   "denied, bound by login, which fails closed, as the store did not decide\n",
		"backstop": "denied, bound by login (source backstop, for at least one limit, as the store did not decide)\n",
		"store":    "denied, bound by login\n",
	} {
		var b strings.Builder
		explanationOfReply(nil, map[string]any{
			"allowed": "0", "limit_id": "login", "retry_after_ms": "100", "source": source,
			"limits": []any{row("login", source, "0"), row("tenant", "backstop", "3")},
		}).print(&b)
		left := "0 of 5"
		if source == "policy" {
			left = "-"
		}
		for _, want := range []string{want, "LEFT AFTER IT  SOURCE    NODE ", " " + left + strings.Repeat(" ", 15-len(left)) + source, "3 of 5         backstop  127.0.0.1:1"} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("%s: %q is not in\n%s", source, want, b.String())
			}
		}
	}
}
