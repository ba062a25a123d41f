package edge_test

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/edge"
)

// TestUsagePlansAdmitEnough checks the numbers of limits that admit more than they say: those of windows that
// each instance counts too, and those whose units instances hold on lease.
func TestUsagePlansAdmitEnough(t *testing.T) {
	for _, row := range []struct{ limits, want string }{
		{"{id: a, by: [tenant], rate: 1000/24h, algorithm: fixed_window}", "Limit: 1000 "},
		{"{id: a, by: [tenant], rate: 1000/24h, algorithm: fixed_window, store: auto-local}", "Limit: 2000 "},
		{"{id: a, by: [tenant], rate: 1000/24h, algorithm: fixed_window, store: local}", "Limit: 2000 "},
		{"{id: a, by: [tenant], rate: 10/s, burst: 1000}", "RateLimit: 10 BurstLimit: 1000 "},
		{"{id: a, by: [tenant], rate: 10/s, burst: 1000, lease: auto}", "RateLimit: 10 BurstLimit: 1050 "},
		{"{id: a, by: [tenant], rate: 10/s, burst: 1000, store: auto-local}", "RateLimit: 20 BurstLimit: 2000 "},
	} {
		set := compile(t, "version: 1\ndefault_plan: p\nplans: {p: ["+row.limits+"]}\n")
		result, err := edge.Render(set, edge.Options{Kind: edge.KindUsagePlans})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(string(result.Template)), " ") + " "; !strings.Contains(got, row.want) {
			t.Errorf("%s: without %q:\n%s", row.limits, row.want, result.Template)
		}
	}
}
