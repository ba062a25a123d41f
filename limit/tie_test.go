package limit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// addressPair is a limits file with two limits of one group, each with the given
// conditions.
const addressPair = `
version: 1
plans: {}
shared:
  - {id: a, by: [ip], rate: 1/s, when: {%s}}
  - {id: b, by: [ip], rate: 2/s, when: {%s}}
`

// TestTiesByAddress checks that two limits tie if both match one address and neither is
// more specific. Blocks of equal length alone are no tie.
func TestTiesByAddress(t *testing.T) {
	for _, c := range []struct {
		a, b string
		tie  bool
	}{
		{`ip: 10.0.0.0/8`, `ip: 10.0.0.0/8`, true},
		{`ip: 10.0.0.0/8`, `ip: 11.0.0.0/8`, false},
		{`ip: 10.0.0.0/8`, `ip: 10.0.0.0/9`, false},
		{`ip: 10.0.0.1`, `ip: 10.0.0.1`, true},
		{`ip: 10.0.0.1`, `ip: 10.0.0.1/32`, true},
		{`ip: 10.0.0.1`, `ip: "::ffff:10.0.0.1"`, true},
		{`ip: 10.0.0.1`, `ip: 10.0.0.2`, false},
		{`ip: 10.0.0.1`, `ip: 10.0.0.0/8`, false},
		{`ip: 0.0.0.0/0`, `ip: "::/0"`, false},
		{`ip: "2001:db8::/32"`, `ip: "2001:0db8::/32"`, true},
		{`ip: "2001:db8::/32"`, `ip: 10.0.0.1/32`, false},
		{`ip: "2001:db8::1"`, `ip: "2001:db8::1/128"`, true},
		{`ip: "2001:db8::1"`, `ip: "2001:db8::2"`, false},
		{`ip: 10.0.0.0/8, op: x`, `ip: 10.0.0.0/8, op: x`, true},
		{`ip: 10.0.0.0/8, op: x`, `ip: 10.0.0.0/8, op: y`, false},
		{`ip: 10.0.0.0/8, op: x`, `ip: 10.0.0.0/8`, false},
		// The bits of a block count like the bytes of a prefix.
		{`ip: 10.0.0.0/16, op: "GET*"`, `ip: 10.0.0.0/8, op: "GET /v1/abc*"`, true},
		{`ip: 10.0.0.0/16, op: "GET*"`, `ip: 10.0.0.0/8, op: "GET /v1/ab*"`, false},
	} {
		yaml := fmt.Sprintf(addressPair, c.a, c.b)
		_, _, err := config.ParseLimits("test.yaml", []byte(yaml), limit.CompileOptions{})
		const tie = `limits "a" (line 5) and "b" (line 6) are equally specific`
		if (err != nil) != c.tie || c.tie && !strings.Contains(err.Error(), tie) {
			t.Errorf("%s beside %s: %v, want a tie = %v", c.a, c.b, err, c.tie)
		}
	}
}

// TestNarrowestBlock checks that of the limits whose block holds an address, the one with
// the narrowest block applies, in any order of the file.
func TestNarrowestBlock(t *testing.T) {
	limits := []string{
		`{id: any, by: [ip], rate: 1/s}`,
		`{id: all4, by: [ip], rate: 1/s, when: {ip: 0.0.0.0/0}}`,
		`{id: wide, by: [ip], rate: 1/s, when: {ip: 10.0.0.0/8}}`,
		`{id: narrow, by: [ip], rate: 1/s, when: {ip: 10.1.0.0/16}}`,
		`{id: one, by: [ip], rate: 1/s, when: {ip: 10.1.2.3}}`,
		`{id: wide6, by: [ip], rate: 1/s, when: {ip: "2001:db8::/32"}}`,
		`{id: one6, by: [ip], rate: 1/s, when: {ip: "2001:db8::1/128"}}`,
	}
	for range limits {
		limits = append(limits[1:], limits[0])
		set := parse(t, "version: 1\nplans: {}\nshared:\n  - "+strings.Join(limits, "\n  - ")+"\n")
		for addr, want := range map[string]string{
			"10.1.2.3": "one", "10.1.2.4": "narrow", "10.2.0.0": "wide", "11.0.0.0": "all4",
			"::ffff:10.1.2.3": "one", "2001:db8::1": "one6", "2001:db8::2": "wide6", "2001:db9::1": "any",
		} {
			a, err := limit.ParseAddr(addr)
			if err != nil {
				t.Fatal(err)
			}
			if got := applied(t, set, limit.Request{Tenant: "t", Addr: a}); got != want {
				t.Errorf("%s first: %q applies to %s, want %s", limits[0], got, addr, want)
			}
		}
	}
}

// TestTiesOfOverrides checks that the overrides of a tenant are compared with each other: two limits of a plan of which one
// is in shadow mode tie for the tenant that enforces both.
func TestTiesOfOverrides(t *testing.T) {
	for _, c := range []struct {
		overrides string
		tie       bool
	}{
		{`a: {mode: enforce}, b: {mode: enforce}`, true},
		{`a: {mode: shadow}, b: {mode: enforce}`, false},
		{`a: {rate: 5/s}`, false},
		{`b: {mode: enforce}`, false}, // an override stands before the limits of the plan
	} {
		file := fmt.Sprintf(`
version: 1
default_plan: free
plans:
  free:
    - {id: a, by: [tenant], rate: 1/s}
    - {id: b, by: [tenant], rate: 2/s, mode: shadow}
tenants:
  acme: {plan: free, overrides: {%s}}
`, c.overrides)
		_, _, err := config.ParseLimits("test.yaml", []byte(file), limit.CompileOptions{})
		const tie = `limits "a" (line 9) and "b" (line 9) are equally specific`
		if (err != nil) != c.tie || c.tie && !strings.Contains(err.Error(), tie) {
			t.Errorf("overrides %s: %v, want a tie = %v", c.overrides, err, c.tie)
		}
	}
}

// BenchmarkCompileOverrides measures compiling a plan of 2,000 limits of one level with 100 tenants that each override one.
func BenchmarkCompileOverrides(b *testing.B) {
	var file strings.Builder
	file.WriteString("version: 1\ndefault_plan: p\nplans:\n  p:\n")
	for i := range 2000 {
		fmt.Fprintf(&file, "    - {id: l%d, by: [tenant], when: {op: \"GET /r%d\"}, rate: 100/m}\n", i, i)
	}
	file.WriteString("tenants:\n")
	for i := range 100 {
		fmt.Fprintf(&file, "  t%d: {plan: p, overrides: {l%d: {rate: 200/m}}}\n", i, i)
	}
	for b.Loop() {
		if _, _, err := config.ParseLimits("test.yaml", []byte(file.String()), limit.CompileOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
