package config

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestLoosened: changes that admit more are reported, and changes that admit less are not.
func TestLoosened(t *testing.T) {
	const before = `
version: 1
default_plan: free
plans:
  free: [{id: tenant, by: [tenant], rate: 10/s}, {id: op, by: [tenant, op], rate: 5/s, burst: 5}]
  gold: [{id: tenant, by: [tenant], rate: 100/s, on_error: closed}, {id: export, by: [tenant], group: e, rate: 20/h, cost: 5}]
tenants:
  acme: {plan: free}
  beta: {plan: gold, overrides: {tenant: {rate: 50/s}}}
shared: [{id: ip, by: [ip], rate: 1000/m}, {id: large, by: [ip], group: large, rate: 9/s, max_cost: 2}]
`
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"rate: 10/s", "rate: 9/s", ""},
		{"rate: 10/s", "rate: 11/s", "plan free: tenant 10/s burst 10 -> 11/s burst 11"},
		{"rate: 10/s", "rate: 600/m, burst: 20", "plan free: tenant 10/s burst 10 -> 600/m burst 20"},
		{", {id: op, by: [tenant, op], rate: 5/s, burst: 5}", "", "plan free: op 5/s burst 5 -> none"},
		{"rate: 5/s, burst: 5", "rate: 5/s, burst: 5, mode: shadow", "plan free: op enforce -> shadow"},
		{"rate: 1000/m", "rate: 1001/m", "ip 1000/m burst 1000 -> 1001/m burst 1001"},
		{"default_plan: free\n", "", "default_plan free -> none: a tenant that is not listed has only the shared limits"},
		{"default_plan: free", "default_plan: gold", "default_plan free -> gold: tenant 10/s burst 10 -> 100/s burst 100; default_plan free -> gold: op 5/s burst 5 -> none"},
		{"on_error: closed", "on_error: open", "plan gold: tenant on_error closed -> open; tenant beta: tenant on_error closed -> open"},
		{"rate: 100/s, on_error", "rate: 90/s, burst: 500, on_error", "plan gold: tenant 100/s burst 100 -> 90/s burst 500; tenant beta: tenant 50/s burst 50 -> 50/s burst 500"},
		{"plan: gold, overrides: {tenant: {rate: 50/s}}", "plan: gold", "tenant beta: tenant 50/s burst 50 -> 100/s burst 100"},
		{"rate: 5/s, burst: 5", "rate: 5/s, burst: 5, cost: 1", "plan free: op 5/s burst 5 -> 5/s burst 5, cost 1"},
		{"by: [tenant, op]", "by: [tenant, op], when: {op: x}", "plan free: op may admit more: when none -> op: x"},
		{"by: [tenant, op]", "by: [tenant, op], group: g", "plan free: op may admit more: group none -> g"},
		{"rate: 5/s, burst: 5", "rate: 5/s, algorithm: fixed_window", "plan free: op may admit more: 5/s burst 5 -> 5/s, algorithm token_bucket -> fixed_window"},
		{"rate: 5/s, burst: 5", "rate: 5/s, burst: 5, max_cost: 3", ""},
		{"rate: 20/h, cost: 5", "rate: 20/h, cost: 10", ""},
		{"rate: 20/h, cost: 5", "rate: 4/h, cost: 1", ""},
		{"rate: 20/h, cost: 5", "rate: 4/h, burst: 5, cost: 1", "plan gold: export 20/h burst 20, cost 5 -> 4/h burst 5, cost 1"},
		{"rate: 20/h, cost: 5", "rate: 5/h, burst: 4, cost: 1", "plan gold: export 20/h burst 20, cost 5 -> 5/h burst 4, cost 1"},
		{"rate: 20/h, cost: 5", "rate: 2/h", "plan gold: export 20/h burst 20, cost 5 -> 2/h burst 2"},
		{"max_cost: 2", "max_cost: 1", ""},
		{"max_cost: 2", "max_cost: 3", "large 9/s burst 9, max_cost 2 -> 9/s burst 9, max_cost 3"},
		{"shared: [", "shared: [{id: pass, action: allow, by: [ip], when: {ip: 192.0.2.0/24}}, ", "pass allows requests"},
		{"acme: {plan: free}", "acme: {plan: gold}", "tenant acme, plan free -> gold: tenant 10/s burst 10 -> 100/s burst 100; tenant acme, plan free -> gold: op 5/s burst 5 -> none"},
		{"overrides: {tenant: {rate: 50/s}}", "overrides: {tenant: {rate: 60/s}}", "tenant beta: tenant 50/s burst 50 -> 60/s burst 60"},
		{"  acme: {plan: free}\n", "", ""},
		{"  beta: {plan: gold, overrides: {tenant: {rate: 50/s}}}\n", "", "tenant beta, plan gold -> free: tenant on_error closed -> open; tenant beta, plan gold -> free: export 20/h burst 20, cost 5 -> none"}, // with a lower rate
	} {
		sets := [2]*limit.Set{}
		for i, content := range []string{before, strings.Replace(before, c.old, c.new, 1)} {
			set, _, err := ParseLimits("f", []byte(content), limit.CompileOptions{})
			if err != nil {
				t.Fatalf("%s: %v", c.new, err)
			}
			sets[i] = set
		}
		if got := strings.Join(limit.Loosened(sets[0], sets[1], []string{"acme"}), "; "); got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.old, c.new, got, c.want)
		}
	}
}
