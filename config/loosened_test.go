package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestLoosenedEveryLevel: leaving out by of a limit that allows is reported, and saying by what it counts is not, unless it lifts a ban then.
func TestLoosenedEveryLevel(t *testing.T) {
	const ip, every, ban = "{id: pass, by: [ip], when: {ip: 192.0.2.0/24}, action: allow}", "{id: pass, when: {ip: 192.0.2.0/24}, action: allow}", ", {id: ban, by: [ip], action: deny}"
	for _, c := range []struct{ before, after, want string }{
		{ip, every, "pass may admit more: by ip -> every level"},
		{every, ip, ""},
		{strings.Replace(ip, "[ip]", "[]", 1), every, "pass may admit more: by none -> every level"},
		{every, every, ""},
		{every, "", ""},
		{every, strings.Replace(every, "/24", "/25", 1), ""},
		{every, strings.Replace(every, "2.0/24", "0.0/16", 1), "pass may admit more: when of other values"},
		{every, strings.Replace(every, "action", "mode: shadow, action", 1), ""},
		{every + ban, ip + ban, "pass (allow) takes the place of ban (deny)"},
		{ip + ban, every + ban, "pass may admit more: by ip -> every level"},
	} {
		var sets [2]*limit.Set
		for i, shared := range []string{c.before, c.after} {
			set, _, err := ParseLimits("f", []byte("version: 1\ndefault_plan: p\nplans: {p: [{id: t, by: [tenant], rate: 5/s}]}\nshared: ["+shared+"]\n"), limit.CompileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			sets[i] = set
		}
		if got := strings.Join(limit.Loosened(sets[0], sets[1], nil), "; "); got != c.want {
			t.Errorf("%s -> %s: %q, want %q", c.before, c.after, got, c.want)
		}
	}
}

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
		{"{id: op, by: [tenant, op]", "{id: ops, by: [tenant, op]", "plan free: op is called ops now: its counters begin anew"},
		{"{id: op, by: [tenant, op], rate: 5/s, burst: 5}", "{id: ops, by: [tenant, op], rate: 6/s, burst: 5}", "plan free: op 5/s burst 5 -> none"},
		{"rate: 5/s, burst: 5", "rate: 5/s, burst: 5, mode: shadow", "plan free: op enforce -> shadow"},
		{"rate: 1000/m", "rate: 1001/m", "ip 1000/m burst 1000 -> 1001/m burst 1001"},
		{"default_plan: free\n", "", "default_plan free -> none: a tenant that is not listed has only the shared limits"},
		{"default_plan: free", "default_plan: gold", "default_plan free -> gold: tenant 10/s burst 10 -> 100/s burst 100; default_plan free -> gold: op 5/s burst 5 -> none"},
		{"on_error: closed", "on_error: open", "plan gold: tenant on_error closed -> open; tenant beta: tenant on_error closed -> open"},
		{"rate: 100/s, on_error", "rate: 90/s, burst: 500, on_error", "plan gold: tenant 100/s burst 100 -> 90/s burst 500; tenant beta: tenant 50/s burst 50 -> 50/s burst 500"},
		{"plan: gold, overrides: {tenant: {rate: 50/s}}", "plan: gold", "tenant beta: tenant 50/s burst 50 -> 100/s burst 100"},
		{"rate: 5/s, burst: 5", "rate: 5/s, burst: 5, cost: 1", "plan free: op 5/s burst 5 -> 5/s burst 5, cost 1"},
		{"by: [tenant, op], rate: 5/s, burst: 5", "by: [tenant, op, user], when: {op: x}, rate: 5/s, burst: 9", "plan free: op 5/s burst 5 -> 5/s burst 9, by tenant, op -> tenant, op, user, when none -> op: x"},
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
		{"shared: [", "shared: [{id: pass, action: allow, when: {ip: 192.0.2.0/24}}, ", "pass allows requests"},
		{"free: [", "free: [{id: pass, action: allow}, ", "plan free: pass allows requests"},
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

// TestLoosenedPlaces: limits whose place another one takes, which admits more, are reported, and others are not.
func TestLoosenedPlaces(t *testing.T) {
	const (
		tenant   = "{id: tenant, by: [tenant], rate: 100/s}"
		ban      = "{id: ban, by: [tenant], when: {op: DELETE *}, action: deny}"
		office   = "{id: office, by: [tenant], when: {ip: 198.51.100.0/24}, action: allow}"
		heavy    = "{id: heavy, by: [tenant], when: {op: GET /r}, rate: 1/s}"
		replaces = "{id: heavy, by: [tenant], when: {op: GET /r}, rate: %s, replaces: [tenant]}"
		ofOp     = "{id: op, by: [tenant, op], rate: 5/s, replaces: [tenant]}"
		free     = "{id: free, by: [tenant, op], when: {op: GET /*}, action: allow}"
		narrowOp = "{id: op, by: [tenant, op], when: {op: GET /a*}, rate: 5/s, replaces: [tenant]}{id: narrow, by: [tenant, op], when: {op: GET /a*, ip: 198.51.100.0/24}, rate: 1/s}"
		ofUser   = "{id: b, by: [tenant, user], missing: share, rate: 1000/s, replaces: [tenant]}"
		slow     = "{id: tenant, by: [tenant], rate: 10/s}"
		get      = "{id: d, by: [tenant, user], when: {op: GET /*}, rate: 20/s}"
		pass     = "{id: pass, by: [tenant, user], when: {op: GET /x*}, missing: share, action: allow}"
		beside   = slow + "{id: b, by: [tenant, user], rate: 20/s, replaces: [tenant]}{id: d, by: [tenant, user], group: g, rate: 5/s, replaces: [tenant]}"
		acme     = "tenants: {acme: {overrides: {tenant: {rate: %s}}}}\n"
	)
	for _, c := range []struct{ before, after, overrides, overridesAfter, want string }{
		{tenant + ban, tenant + ban, "", "90/s", "tenant acme: tenant (90/s burst 90) takes the place of ban (deny)"},
		{tenant + ban, tenant + ban, "90/s", "80/s", ""},
		{tenant + heavy, tenant + heavy, "", "90/s", "tenant acme: tenant (90/s burst 90) takes the place of heavy (1/s burst 1)"},
		{tenant + heavy, tenant + heavy, "", "1/s", ""},
		{tenant + office, tenant + office, "", "90/s", ""},
		{tenant + office, tenant + office, "90/s", "80/s", ""},
		{tenant + office, tenant + office, "90/s", "", "tenant acme: tenant 90/s burst 90 -> 100/s burst 100; tenant acme: office (allow) takes the place of tenant (100/s burst 100)"},
		{tenant + office, tenant + office, "90/s", "90/s}, office: {action: allow", "tenant acme: office (allow) takes the place of tenant (90/s burst 90)"},
		{tenant + office, tenant + office, "90/s}, office: {action: allow", "90/s", ""},
		{tenant + office, tenant + strings.Replace(office, "allow", "allow, mode: off", 1), "", "", ""},
		{tenant + office, tenant + strings.Replace(office, "allow", "deny", 1), "", "", ""},
		{tenant + office, tenant + strings.Replace(office, "0/24", "0/25", 1), "", "", ""},
		{tenant + strings.Replace(office, "allow", "allow, mode: off", 1), tenant + office, "", "", "plan free: office off -> enforce"},
		{tenant, tenant + strings.Replace(office, "allow", "allow, mode: shadow", 1), "", "", ""},
		{tenant + ban, tenant + strings.Replace(ban, "deny", "allow", 1), "", "", "plan free: ban deny -> allow"},
		{tenant, tenant + heavy, "", "", "plan free: heavy (1/s burst 1) counts requests that tenant (100/s burst 100) counted: both together may admit more"},
		{tenant, strings.Replace(tenant, "100/s", "50/s", 1) + strings.Replace(replaces, "%s", "50/s", 1), "", "", "plan free: heavy (50/s burst 50) counts requests that tenant (50/s burst 50) counted: both together may admit more"},
		{"{id: op, by: [tenant, op], rate: 9/s}", "{id: op, by: [tenant, op], rate: 9/s}{id: pay, by: [tenant, op], when: {op: POST /pay*}, rate: 9/s}", "", "", ""},
		{tenant, tenant + strings.Replace(replaces, "%s", "50/s", 1), "", "", "plan free: heavy (50/s burst 50) counts requests that tenant (100/s burst 100) counted: both together may admit more"},
		{tenant + ofOp, tenant + strings.Replace(ofOp, ", replaces: [tenant]", "", 1), "", "", ""},
		{tenant + strings.Replace(ofOp, ", replaces: [tenant]", "", 1), tenant + ofOp, "", "", "plan free: op may admit more: replaces none -> tenant; plan free: op (5/s burst 5) takes the place of tenant (100/s burst 100)"},
		{tenant + ofOp, tenant + "{id: op, by: [tenant, op], action: deny}", "", "", ""},
		{tenant + strings.Replace(replaces, "%s", "50/s", 1), tenant + strings.Replace(replaces, "%s, replaces: [tenant]", "50/s", 1), "", "", ""},
		{tenant, tenant + strings.Replace(replaces, "%s", "500/s", 1), "", "", "plan free: heavy (500/s burst 500) takes the place of tenant (100/s burst 100)"},
		{tenant + strings.Replace(replaces, "%s", "50/s", 1), tenant + strings.Replace(replaces, "%s", "500/s", 1), "", "", "plan free: heavy 50/s burst 50 -> 500/s burst 500"},
		{tenant + strings.Replace(replaces, "%s", "500/s, enforce: 10%", 1), tenant + strings.Replace(replaces, "%s", "500/s", 1), "", "", "plan free: heavy (500/s burst 500) takes the place of tenant (100/s burst 100)"},
		{tenant + strings.Replace(replaces, "%s", "500/s", 1), tenant + strings.Replace(replaces, "%s", "500/s", 1), "100/s", "", "tenant acme: heavy (500/s burst 500) takes the place of tenant (100/s burst 100)"},
		{strings.Replace(tenant, "}", ", on_error: closed}", 1), strings.Replace(tenant, "}", ", on_error: closed}", 1) + heavy, "", "", "plan free: heavy (1/s burst 1) takes the place of tenant (100/s burst 100)"},
		{"{id: e, by: [tenant], when: {op: export}, rate: 5/s}", "{id: e, by: [tenant], rate: 1/s}", "", "", ""},
		{"{id: e, by: [tenant], when: {op: GET /a*}, rate: 5/s}", "{id: e, by: [tenant], when: {op: GET /*}, rate: 5/s}", "", "", ""},
		{"{id: e, by: [tenant], when: {op: GET /*}, rate: 5/s}", "{id: e, by: [tenant], when: {op: GET /a*}, rate: 5/s}", "", "", "plan free: e may admit more: when op: GET /* -> op: GET /a*"},
		{"{id: e, by: [tenant], when: {op: export}, rate: 5/s}", "{id: e, by: [tenant], rate: 6/s}", "", "", "plan free: e 5/s burst 5 -> 6/s burst 6"},
		{tenant + "{id: e, by: [tenant], when: {op: GET /a}, rate: 500/s}", tenant + "{id: e, by: [tenant], when: {op: GET /*}, rate: 500/s}", "", "", "plan free: e (500/s burst 500) takes the place of tenant (100/s burst 100)"},
		{heavy + "{id: e, by: [tenant], when: {op: GET /q}, rate: 1/m}", heavy + "{id: e, by: [tenant], when: {op: GET /*}, rate: 1/m}", "", "", ""},
		{tenant + office, tenant + strings.Replace(office, "allow", "allow, missing: deny", 1), "", "", "plan free: office may admit more: missing pass -> deny"},
		{tenant, tenant + ofOp, "", "", "plan free: op (5/s burst 5) takes the place of tenant (100/s burst 100)"},
		{tenant + ofOp + free, tenant + ofOp, "", "", "plan free: op (5/s burst 5) takes the place of tenant (100/s burst 100) for requests that free decided"},
		{tenant + ofOp + free, tenant + ofOp + strings.Replace(free, "/*", "/a*", 1), "", "", "plan free: op (5/s burst 5) takes the place of tenant (100/s burst 100) for requests that free decided"},
		{tenant + ofOp + free + strings.ReplaceAll(free, "free", "get"), tenant + ofOp + free, "", "", ""},
		{tenant + ofOp + free, tenant + ofOp + free, "", "5/s}, op: {rate: 4/s", "tenant acme: op (4/s burst 4) takes the place of tenant (5/s burst 5) for requests that free decided"},
		{tenant + ofOp + free + "{id: net, by: [tenant, ip], rate: 1/s, replaces: [tenant]}", tenant + ofOp + "{id: net, by: [tenant, ip], rate: 1/s, replaces: [tenant]}", "", "", "plan free: op (5/s burst 5) takes the place of tenant (100/s burst 100) for requests that free decided"},
		{tenant + ofOp + free + "{id: net, by: [tenant, ip], rate: 1/s, missing: share, replaces: [tenant]}", tenant + ofOp + "{id: net, by: [tenant, ip], rate: 1/s, missing: share, replaces: [tenant]}", "", "", ""},
		{tenant + ofOp + free + "{id: narrow, by: [tenant, op], when: {op: GET /a, ip: 198.51.100.7}, rate: 1/s}", tenant + ofOp + "{id: narrow, by: [tenant, op], when: {op: GET /a, ip: 198.51.100.7}, rate: 1/s}", "", "", "plan free: op (5/s burst 5) takes the place of tenant (100/s burst 100) for requests that free decided"},
		{tenant + narrowOp + "{id: net, by: [tenant, op], when: {ip: 198.51.100.0/24}, action: allow}", tenant + narrowOp, "", "", ""},
		{tenant + strings.Replace(ofOp, ", replaces: [tenant]", "", 1) + free, tenant + strings.Replace(ofOp, ", replaces: [tenant]", "", 1), "", "", ""},
		{ofUser + slow + get + pass, ofUser + slow + get, "", "", "plan free: b (1000/s burst 1000) takes the place of tenant (10/s burst 10) for requests that pass decided"},
		{ofUser + slow + strings.Replace(get, "rate", "missing: share, rate", 1) + pass, ofUser + slow + strings.Replace(get, "rate", "missing: share, rate", 1), "", "", ""},
		{beside + strings.Replace(pass, "missing: share, ", "", 1), beside, "", "", ""},
		{tenant + "{id: user, by: [tenant, user], rate: 9/s, missing: share}", tenant + "{id: user, by: [tenant, user], rate: 9/s, missing: deny}", "", "", ""},
		{tenant + "{id: user, by: [tenant, user], rate: 9/s, missing: deny}", tenant + "{id: user, by: [tenant, user], rate: 9/s, missing: share}", "", "", "plan free: user may admit more: missing deny -> share"},
	} {
		file := func(limits, overrides string) *limit.Set {
			t.Helper()
			if overrides != "" {
				overrides = strings.Replace(acme, "%s", overrides, 1)
			}
			content := "version: 1\ndefault_plan: free\nplans: {free: [" + strings.ReplaceAll(limits, "}{", "}, {") + "]}\n" + overrides
			set, _, err := ParseLimits("f", []byte(content), limit.CompileOptions{})
			if err != nil {
				t.Fatalf("%s: %v", content, err)
			}
			return set
		}
		if got := strings.Join(limit.Loosened(file(c.before, c.overrides), file(c.after, c.overridesAfter), nil), "; "); got != c.want {
			t.Errorf("%s %s to %s %s:\n%s\nwant\n%s", c.before, c.overrides, c.after, c.overridesAfter, got, c.want)
		}
	}
}

// TestLoosenedDeclared: a condition on the beginning of values holds for no value that is not declared any more, so that a limit may
// admit more, and for one that is declared now, which an allow admits.
func TestLoosenedDeclared(t *testing.T) {
	const fewer = "plan free: r may admit more: other declared values or options"
	for limits, want := range map[string][2]string{
		"by: [tenant], action: deny": {fewer, ""},
		"by: [tenant], rate: 5/s":    {fewer, ""},
		"action: allow":              {"", fewer},
	} {
		file := func(values string) *limit.Set {
			content := "version: 1\ndefault_plan: free\ndimensions: {region: {values: " + values + "}}\nplans: {free: [{id: r, when: {region: eu*}, " + limits + "}]}\n"
			set, _, err := ParseLimits("f", []byte(content), limit.CompileOptions{})
			if err != nil {
				t.Fatalf("%s: %v", content, err)
			}
			return set
		}
		both, one := file("[eu1, eu2]"), file("[eu1]")
		for i, got := range [][]string{limit.Loosened(both, one, nil), limit.Loosened(one, both, nil)} {
			if strings.Join(got, "; ") != want[i] {
				t.Errorf("%s, %d: %q, want %q", limits, i, got, want[i])
			}
		}
		other := file("[eu1, eu2, us1]") // for which the condition does not hold
		for i, got := range [][]string{limit.Loosened(both, other, nil), limit.Loosened(other, both, nil)} {
			if len(got) != 0 {
				t.Errorf("%s, another value %d: %q", limits, i, got)
			}
		}
	}
}

// TestLoosenedFreedBound: a file with more limits than are compared for those that removed ones leave to others says so, and has its other
// lines. One whose limits are tightened leaves nothing to others, and has no line.
func TestLoosenedFreedBound(t *testing.T) {
	var allows, takers strings.Builder
	for i := range 300 {
		fmt.Fprintf(&allows, "{id: allow%d, by: [tenant, op], when: {op: GET /*, ip: 10.%d.%d.0/24}, action: allow}, ", i, i/256, i%256)
		fmt.Fprintf(&takers, "{id: op%d, by: [tenant, op], when: {op: GET /%d/*}, rate: 50/s, replaces: [tenant]}, ", i, i)
	}
	file := func(limits string) *limit.Set {
		content := "version: 1\ndefault_plan: free\nplans: {free: [" + limits + "{id: tenant, by: [tenant], rate: 5/s}]}\n"
		set, _, err := ParseLimits("f", []byte(content), limit.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	before := file(takers.String() + allows.String())
	got := limit.Loosened(before, file(takers.String()+"{id: heavy, by: [tenant], when: {op: x}, rate: 900/s, replaces: [tenant]}, "), nil)
	want := []string{"plan free: heavy (900/s burst 900) takes the place of tenant (5/s burst 5)", "more limits may take the place of others than are compared"}
	if len(got) < 3 || got[0] != want[0] || got[len(got)-1] != want[1] {
		t.Errorf("%q, want %q", got, want)
	}
	tight := strings.NewReplacer("50/s", "40/s", "action: allow", "rate: 9/s")
	if got := limit.Loosened(before, file(tight.Replace(takers.String()+allows.String())), nil); len(got) > 0 {
		t.Errorf("tightened: %q", got)
	}
}
