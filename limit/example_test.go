package limit_test

import (
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestExample: the tenant and the op of an example are of the limits, where these have some.
func TestExample(t *testing.T) {
	const plans = "version: 1\ndefault_plan: free\nplans:\n  free:\n"
	for name, row := range map[string]struct{ file, tenant, op string }{
		"no tenants, no op":    {plans + "    - {id: a, by: [tenant], rate: 10/s}\n", "acme", "POST /pay"},
		"the usual ones":       {plans + "    - {id: b, by: [tenant], rate: 10/s, when: {op: \"GET /x\"}}\n    - {id: a, by: [tenant], rate: 10/s, group: g, when: {op: \"POST /p*\"}}\ntenants:\n  abc: {plan: free}\n  acme: {plan: free}\n", "acme", "POST /pay"},
		"others":               {plans + "    - {id: a, by: [tenant], rate: 10/s, when: {op: \"GET /x/*\"}}\ntenants:\n  \"b b\": {plan: free}\n  zed: {plan: free}\n  ink: {plan: free}\n", "ink", "GET /x/"},
		"not plain":            {plans + "    - {id: a, by: [tenant], rate: 10/s, when: {op: \"GET $x\"}}\ntenants:\n  \"b b\": {plan: free}\n", "acme", "POST /pay"},
		"of the plan":          {plans + "    - {id: a, by: [tenant], rate: 10/s, when: {op: \"GET /x\"}}\n  paid:\n    - {id: a, by: [tenant], rate: 20/s, when: {op: \"GET /y\"}}\ntenants:\n  ink: {plan: paid}\n", "ink", "GET /y"},
		"a banned tenant":      {plans + "    - {id: a, by: [tenant], rate: 10/s}\ntenants:\n  evil: {plan: free}\n  good: {plan: free}\nshared:\n  - {id: banned, when: {tenant: evil}, action: deny}\n", "good", "POST /pay"},
		"a demanded dimension": {plans + "    - {id: a, by: [tenant, user], rate: 10/s, missing: deny, when: {op: \"U*\"}}\n", "acme", "POST /pay"},
		"all refused":          {plans + "    - {id: a, by: [tenant, user], rate: 10/s, missing: deny}\n", "acme", "POST /pay"},
		"denied or slots":      {plans + "    - {id: a, by: [tenant], algorithm: concurrency, slots: 3, when: {op: \"GET /slots\"}}\nshared:\n  - {id: d, action: deny, when: {op: \"GET /denied\"}}\n", "acme", "POST /pay"},
	} {
		set, _, err := config.ParseLimits("limits.yaml", []byte(row.file), limit.CompileOptions{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if tenant, op := set.Example("acme", "POST /pay"); tenant != row.tenant || op != row.op {
			t.Errorf("%s: %s %q, want %s %q", name, tenant, op, row.tenant, row.op)
		}
	}
}
