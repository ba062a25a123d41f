package main

import (
	"strings"
	"testing"
)

// TestDiffOfFiles: the difference of two files has the names of plans and tenants, and no keys of a table.
func TestDiffOfFiles(t *testing.T) {
	before := writeLimits(t, freePlan+"tenants: {a: {plan: free}}\n")
	after := writeLimits(t, "version: 1\ndefault_plan: free\nplans: {free: [{id: tenant, by: [tenant], rate: 1/h}], gold#1: []}\nmax_levels: 9\n")
	out, errs, code := command("limits", "diff", before, after)
	if code != exitDenied || errs != "" {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	for _, want := range []string{"add plan gold#1\n", "change plan free\n", "change shared\n", "delete tenant a\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}
