package config_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestLists checks that a plan has the limits of the lists that it includes, in their places, as
// if they were written out, and that the parts of a file have them too.
func TestLists(t *testing.T) {
	const file = `version: 1
default_plan: free
plans:
  free:
    - {id: first, by: [tenant, op], rate: 1/s, on_error: open}
    - include: base
  partner: [{include: base}]
  bare: []
lists:
  base:
    - &tenant {id: tenant, by: [tenant], rate: 100/s, on_error: open}
    - {id: user, by: [tenant, user], rate: 10/s, on_error: open, missing: share}
tenants:
  acme: {plan: partner, overrides: {user: {rate: 20/s}}}
`
	const same = `version: 1
default_plan: free
plans:
  free:
    - {id: first, by: [tenant, op], rate: 1/s, on_error: open}
    - {id: tenant, by: [tenant], rate: 100/s, on_error: open}
    - {id: user, by: [tenant, user], rate: 10/s, on_error: open, missing: share}
  partner:
    - {id: tenant, by: [tenant], rate: 100/s, on_error: open}
    - {id: user, by: [tenant, user], rate: 10/s, on_error: open, missing: share}
  bare: []
tenants:
  acme: {plan: partner, overrides: {user: {rate: 20/s}}}
`
	var sets [2]*limit.Set
	for i, text := range []string{file, same} {
		set, warnings, err := config.ParseLimits("limits.yaml", []byte(text), limit.CompileOptions{})
		if err != nil || len(warnings) > 0 {
			t.Fatalf("%v, %v", err, warnings)
		}
		sets[i] = set
	}
	if got := limit.Changes(sets[0], sets[1]); len(got) > 0 {
		t.Errorf("written out, it has other limits: %q", got)
	}
	parts, err := config.SplitLimits("limits.yaml", []byte(file))
	if err != nil {
		t.Fatal(err)
	}
	plain, err := config.SplitLimits("limits.yaml", []byte(same))
	if err != nil || len(parts) != len(plain) {
		t.Fatalf("%v: %d and %d parts", err, len(parts), len(plain))
	}
	for key, body := range plain {
		if string(parts[key]) != string(body) {
			t.Errorf("%s is\n%s, want\n%s", key, parts[key], body)
		}
	}
}

// TestListsUnread checks the warning of a list that no plan includes.
func TestListsUnread(t *testing.T) {
	_, warnings, err := config.ParseLimits("limits.yaml", []byte("version: 1\ndefault_plan: p\nplans: {p: [{include: a}, {id: r, by: [tenant], rate: 1/s, on_error: open}]}\nlists:\n  a: []\n  b: []\n"), limit.CompileOptions{})
	if err != nil || len(warnings) != 1 || warnings[0].Format("f") != "f:6: lists.b: no plan includes it: its limits are not read" {
		t.Errorf("%v, %v", warnings, err)
	}
}

// TestListsMistakesOnce: a mistake in a list is reported once, however many plans include it.
func TestListsMistakesOnce(t *testing.T) {
	for mistake, times := range map[string]int{"rat: 1/s": 1, "rate: [1/s, 2/m]": 1, "rate: 1/s, when: {op: [a, b]}": 1, "rate: 0/s": 1, "burst: {}, rate: {}": 2} {
		file := "version: 1\ndefault_plan: p\nplans:\n  p: [{include: l}]\n  q: [{include: l}]\n  r: [{id: b, by: [tenant, op], rate: 1/s}, {include: l}]\nlists: {l: [{id: a, by: [tenant], " + mistake + "}]}"
		_, _, err := config.ParseLimits("f", []byte(file), limit.CompileOptions{})
		if err == nil || strings.Count(err.Error(), "\n")+1 != times {
			t.Errorf("%s: %v", mistake, err)
		}
	}
}

// TestListsMistakes checks the errors for lists, and that aliases and lists together cannot repeat
// more than aliases may.
func TestListsMistakes(t *testing.T) {
	const plan = "version: 1\ndefault_plan: p\nplans:\n  p: [{include: base}]\n"
	for _, row := range []struct{ file, want string }{
		{plan, `limits.yaml:4: plans.p: there is no list "base" among lists`},
		{plan + "lists: {bse: []}", `limits.yaml:4: plans.p: there is no list "base" among lists; did you mean bse?`},
		{"version: 1\nplans: {p: [{include: [a, b]}]}", "limits.yaml:2: plans.p: one name belongs behind include"},
		{plan + "lists: {base: 3}", "limits.yaml:5: lists.base: a list of limits belongs here"},
		{plan + "lists: [a]", "limits.yaml:5: lists: names with values belong here"},
		{plan + "lists: {base: []}\nlists: {base: []}", "limits.yaml:6: lists: lists stand once in a limits file"},
		{plan + "lists: {base: [{include: base}]}", "limits.yaml:5: lists.base: a list cannot include another"},
		{plan + "lists: {base: [{id: a, by: [tenant], rate: x}]}", `limits.yaml:5: rate: "x"`},
		{"version: 1\nplans:\n  p: [{include: base, id: a}]\nlists: {base: []}", "limits.yaml:3: plans.p[0]: include stands alone"},
		{"version: 1\nplans:\n" + included(20) + "lists:\n  base: [" + strings.Repeat("{id: a},", 1000) + "]", "lists stand for more than 16384 limits"},
		{"version: 1\nplans:\n  p: [&a {id: a, by: [" + strings.Repeat("x,", 2000) + "]}]\n" + included(30) + "lists:\n  base: [" + strings.Repeat("*a,", 200) + "]", "aliases repeat more than 1048576 values"},
	} {
		_, _, err := config.ParseLimits("limits.yaml", []byte(row.file), limit.CompileOptions{})
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%.200s: %v, want %s", row.file, err, row.want)
		}
	}
}

// included returns a number of plans that include a list.
func included(plans int) string {
	var b strings.Builder
	for i := range plans {
		fmt.Fprintf(&b, "  p%d: [{include: base}]\n", i)
	}
	return b.String()
}
