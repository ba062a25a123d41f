package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// repeatedPlan returns a limits file with a plan of limits limits, and plans aliases of
// it.
func repeatedPlan(limits, plans int) string {
	var b strings.Builder
	b.WriteString("version: 1\ndefault_plan: p\nplans:\n  p: &p\n")
	for i := range limits {
		fmt.Fprintf(&b, "    - {id: l%d, by: [tenant, op], when: {op: \"POST /v1/%d*\"}, rate: 600/m}\n", i, i)
	}
	for i := range plans {
		fmt.Fprintf(&b, "  p%d: *p\n", i)
	}
	return b.String()
}

// nested returns a limits file of aliases of lists of aliases, each ten times the last.
func nested(levels int) string {
	var b strings.Builder
	b.WriteString("version: 1\ndimensions:\n  d0: &d0 {values: [x]}\n")
	for i := range levels {
		fmt.Fprintf(&b, "  d%d: &d%d [%s]\n", i+1, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*d%d, ", i), 10), ", "))
	}
	return b.String()
}

// TestAliasesBounded: the values that aliases stand for are counted before they are read,
// and a file with too many is rejected with the place, in bounded memory.
func TestAliasesBounded(t *testing.T) {
	for name, c := range map[string]struct{ file, want string }{
		"plans": {
			repeatedPlan(500, 2000),
			"f:666: aliases repeat more than 1048576 values, *p here 6501 of them: write fewer out, for example by giving tenants one plan instead of equal ones",
		},
		"nested": {nested(30), "f:9: aliases repeat more than 1048576 values, *d5 here 411111 of them"},
		"itself": {"version: 1\nplans: &p {a: *p}", "f:2: *p stands for what it is part of: write out what it should be"},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			n := allocated(func() { _, _, err = ParseLimits("f", []byte(c.file), limit.CompileOptions{}) })
			if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("refused with\n%.500v\nwant\n%s", err, c.want)
			}
			if n > 32<<20 {
				t.Errorf("%d MiB were allocated for a file of %d bytes", n>>20, len(c.file))
			}
			if _, err := SplitLimits("f", []byte(c.file)); err == nil {
				t.Error("it is taken apart")
			}
		})
	}
}

// TestAliasesOfManyTenants: many tenants that share their overrides are within bounds.
func TestAliasesOfManyTenants(t *testing.T) {
	const tenants, overridden = 8_000, 32
	var limits, overrides []string
	for i := range overridden {
		limits = append(limits, fmt.Sprintf("{id: l%d, by: [tenant], rate: 1/s, group: g%d, mode: off}", i, i))
		overrides = append(overrides, fmt.Sprintf("l%d: {burst: 10}", i))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "version: 1\nplans:\n  p: [%s]\ntenants:\n  t: {plan: p, overrides: &o {%s}}\n", strings.Join(limits, ", "), strings.Join(overrides, ", "))
	for i := range tenants {
		fmt.Fprintf(&b, "  t%d: {plan: p, overrides: *o}\n", i)
	}
	d := &limitsDecoder{}
	if root, ok := d.document([]byte(b.String())); !ok || root == nil {
		t.Errorf("refused with %v", d.problems)
	}
	if values := tenants * (1 + overridden*4); values < maxAliased*9/10 {
		t.Errorf("%d values are repeated, which is no test", values)
	}
}

// TestProblemsBounded: of a file that consists of mistakes, a readable number is listed,
// in bounded memory.
func TestProblemsBounded(t *testing.T) {
	file := "version: 1\ndefault_plan: p\nplans:\n  p: [" + strings.Repeat("a,", 1<<15) + "]\n"
	var err error
	n := allocated(func() { _, _, err = ParseLimits("f", []byte(file), limit.CompileOptions{}) })
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != maxProblems+1 || lines[0] != "f:4: plans.p[0]: the fields of a limit belong here, - id: NAME and its rate; for the limits of a list write - include: a" ||
		lines[maxProblems] != "f:4: more mistakes follow: mend these first" {
		t.Errorf("%d mistakes are listed, %q to %q", len(lines), lines[0], lines[len(lines)-1])
	}
	if n > 64<<20 {
		t.Errorf("%d MiB were allocated for a file of %d bytes", n>>20, len(file))
	}
}
