package limit_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestNear compares the border with exact fractions.
func TestNear(t *testing.T) {
	shares := map[string]*big.Rat{"80%": big.NewRat(8, 10), "0.01%": big.NewRat(1, 10_000), "100%": big.NewRat(1, 1), "33.33%": big.NewRat(3333, 10_000)}
	for share, used := range shares {
		l := parse(t, "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: a, by: [tenant], rate: 10/s, warn: "+share+"}\n").LimitByID("a")
		if l.DescribeWarn() != share || !l.Warns() {
			t.Errorf("%s is described as %q", share, l.DescribeWarn())
		}
		rapid.Check(t, func(rt *rapid.T) {
			its := *l
			its.Params.Capacity = rapid.Int64Range(1, 1<<53).Draw(rt, "capacity")
			remaining := rapid.Int64Range(0, its.Params.Capacity).Draw(rt, "remaining")
			// used = (capacity - remaining) / capacity
			want := new(big.Rat).SetFrac(big.NewInt(its.Params.Capacity-remaining), big.NewInt(its.Params.Capacity)).Cmp(used) >= 0
			if got := its.Near(remaining); got != want {
				rt.Errorf("%d of %d left at %s: %v", remaining, its.Params.Capacity, share, got)
			}
		})
	}
}

// TestWarnWords checks the texts about mistakes in warn, overrides, and the words about a change.
func TestWarnWords(t *testing.T) {
	file := func(limit string) string {
		return "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: a, by: [tenant], " + limit + "}\n"
	}
	for limits, want := range map[string]string{
		"rate: 1/s, warn: 80":              `"80" is not a percentage`,
		"rate: 1/s, warn: 0%":              "more than 0% and at most 100%",
		"rate: 1/s, warn: 100.01%":         "more than 0% and at most 100%",
		"action: deny, warn: 80%":          "counts nothing",
		"rate: 1/s, warm: 80%":             `did you mean warn?`,
		"rate: 1/s, warn: 80%, mode: warn": "enforce, off, shadow",
	} {
		_, _, err := config.ParseLimits("limits.yaml", []byte(file(limits)), limit.CompileOptions{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", limits, err, want)
		}
	}
	before, after := parse(t, file("rate: 1/s")), parse(t, file("rate: 1/s, warn: 80%"))
	if lines := limit.Changes(before, after); len(lines) != 1 || lines[0] != "plan p: a warn never -> 80%" {
		t.Errorf("changes %q", lines)
	}
	if lines := limit.Loosened(before, after, nil); len(lines) != 0 {
		t.Errorf("loosened %q", lines)
	}
	with := parse(t, file("rate: 1/s, warn: 80%")+"tenants:\n  t: {plan: p, overrides: {a: {rate: 5/s}}}\n  u: {plan: p, overrides: {a: {warn: 50%}}}\n")
	for tenant, want := range map[string]string{"t": "80%", "u": "50%"} {
		if got := with.TenantLimits(tenant)[0].DescribeWarn(); got != want {
			t.Errorf("%s warns at %q, want %q", tenant, got, want)
		}
	}
}
