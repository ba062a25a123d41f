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
