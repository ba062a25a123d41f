package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// TestCompleteFor: a file lists the kinds of parts for which it is complete; the list is
// not a part.
func TestCompleteFor(t *testing.T) {
	const file = "version: 1\ndefault_plan: p\nplans: {p: [{id: a, by: [tenant], rate: 1/s}]}\n"
	for _, c := range []struct {
		line, problem string
		want          []string
	}{
		{"", "", []string{PartShared, PartPlans, PartTenants}},
		{"complete_for: [plans, shared]", "", []string{PartPlans, PartShared}},
		{"complete_for: []", "", nil},
		{"complete_for: plans", "complete_for: say a list", nil},
		{"complete_for: [plan]", `say shared, plans or tenants, not "plan"`, nil},
	} {
		content := []byte(file + c.line + "\n")
		_, _, err := ParseLimits("f", content, limit.CompileOptions{})
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%s: %v", c.line, err)
			}
			continue
		}
		kinds, failed := CompleteFor("f", content)
		if err != nil || failed != nil || !slices.Equal(kinds, c.want) {
			t.Errorf("%s: %v, %v, %v", c.line, kinds, err, failed)
		}
		parts, err := SplitLimits("f", content)
		if err != nil || strings.Contains(string(parts[table.KeyShared]), "complete") {
			t.Errorf("%s: %s, %v", c.line, parts[table.KeyShared], err)
		}
	}
}
