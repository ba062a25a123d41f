package limit_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestLevelsThatExclude: limits whose conditions exclude each other do not count together, and the error names those
// that do.
func TestLevelsThatExclude(t *testing.T) {
	const file = `
version: 1
default_plan: p
max_levels: %d
plans:
  p:
    - {id: tenant, by: [tenant], rate: 20/s}
    - {id: login, by: [tenant, op], when: {op: "POST /login"}, group: login, rate: 20/m}
    - {id: exports, by: [tenant, op], when: {op: "POST /v1/exports*"}, rate: 10/h}
    - {id: shadow, by: [tenant], group: s, mode: shadow, rate: 10/h}
  q:
    - {id: exports, by: [tenant], group: other, rate: 10/h}
    - {id: tenant, by: [tenant], rate: 10/h}
tenants: {t: {plan: p, overrides: {tenant: {rate: 5/s}}}}
`
	set, _, err := config.ParseLimits("f", fmt.Appendf(nil, file, 2), limit.CompileOptions{})
	if err != nil || set.MaxEnforced() != 2 {
		t.Fatalf("%v", err)
	}
	_, _, err = config.ParseLimits("f", fmt.Appendf(nil, file, 1), limit.CompileOptions{})
	for _, want := range []string{`could meet 2 enforced limits, more than max_levels (1): "tenant", "login"; merge`, `(1): "exports", "tenant"; merge`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %s", err, want)
		}
	}
}

// TestReplacedLevels: a limit that another replaces does not count beside it.
func TestReplacedLevels(t *testing.T) {
	set, _, err := config.ParseLimits("f", []byte(`version: 1
default_plan: p
max_levels: 2
plans:
  p:
    - {id: a, by: [tenant], rate: 1/s}
    - {id: b, by: [tenant], group: b, rate: 1/m}
    - {id: c, by: [tenant, user], rate: 1/s, missing: pass, replaces: [a, b]}
    - {id: d, by: [tenant, user], group: d, rate: 1/m, missing: pass, replaces: [a, b]}
`), limit.CompileOptions{})
	if err != nil || set.MaxEnforced() != 2 {
		t.Fatalf("%v, %d", err, set.MaxEnforced())
	}
}

// TestMaxEnforced compares the largest number of limits with those that requests meet: there are never more.
func TestMaxEnforced(t *testing.T) {
	patterns := []string{"", "a", "b", "a*", "ab*", "*"}
	rapid.Check(t, func(t *rapid.T) {
		var file strings.Builder
		file.WriteString("version: 1\ndefault_plan: p\nmax_levels: 64\nplans:\n  p:\n")
		replaces := false
		for i := range rapid.IntRange(1, 9).Draw(t, "limits") {
			var when []string
			by, more := "tenant", ""
			if i > 0 && rapid.IntRange(0, 3).Draw(t, "finer") == 0 { // than the first, which counts by tenant
				by, more, replaces = "tenant, user", ", replaces: [l0]", true
			}
			for _, dim := range []string{"op", "user"} {
				if p := rapid.SampledFrom(patterns).Draw(t, dim); p != "" {
					when = append(when, fmt.Sprintf("%s: %q", dim, p))
				}
			}
			fmt.Fprintf(&file, "    - {id: l%d, by: [%s], group: g%d, rate: 1/s, when: {%s}%s}\n", i, by, i, strings.Join(when, ", "), more)
		}
		set, _, err := config.ParseLimits("f", []byte(file.String()), limit.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for _, op := range []string{"", "a", "b", "ab", "abc", "c"} {
			for _, user := range []string{"a", "b", "ab", "abc", "c"} {
				n := 0
				for _, c := range set.Explain(&limit.Request{Tenant: "t", Op: op, Cost: 1, Dims: []limit.Dim{{Name: "user", Value: user}}}) {
					if c.Applies {
						n++
					}
				}
				most = max(most, n)
			}
		}
		// With replaces the number is a bound: limits are compared in pairs.
		if got := set.MaxEnforced(); got < most || got > most && !replaces {
			t.Fatalf("%d, and a request meets %d:\n%s", got, most, file.String())
		}
	})
}

// TestMaxLevelsBound: where the search ends before it has the true number, the error says so and names no limits, which
// may exclude each other.
func TestMaxLevelsBound(t *testing.T) {
	var file strings.Builder
	file.WriteString("version: 1\nmax_levels: 18\nplans:\n  p:\n")
	for i := range 40 {
		fmt.Fprintf(&file, "    - {id: l%d, by: [tenant], group: g%d, rate: 1/s, when: {d%d: a, d%d: b}}\n", i, i, i/2, i/2+1+i%2)
	}
	_, _, err := config.ParseLimits("limits.yaml", []byte(file.String()), limit.CompileOptions{})
	if err == nil || !strings.Contains(err.Error(), "one request could meet up to ") || !strings.Contains(err.Error(), "too many to find the true number") || strings.Contains(err.Error(), `"l0"`) {
		t.Errorf("%v", err)
	}
}
