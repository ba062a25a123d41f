package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestLongAddresses: commands that have no bound on how long addresses are kept warn of a file that a proxy refuses.
func TestLongAddresses(t *testing.T) {
	limits := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(limits, []byte("version: 1\nshared: [{id: a, by: [ip], rate: 50/d}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "limits.yaml:2: rate: a hashed address would be kept for up to 27h"
	if _, errs, code := command("limits", "lint", limits); code != exitError || !strings.Contains(errs, want) {
		t.Errorf("lint: exit %d: %s", code, errs)
	}
	for _, args := range [][]string{{"limits", "explain", limits, "t", "o", "203.0.113.7"}, {"replay", "--limits", limits, "../../examples/access.log"}} {
		_, errs, code := command(args...)
		if code != exitOK || !strings.Contains(errs, want) || !strings.Contains(errs, "(warning: limitgate serve refuses it without that setting)\n") {
			t.Errorf("%s: exit %d: %s", args, code, errs)
		}
	}
}
