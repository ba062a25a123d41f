package limit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestLevelsOfManyTenants: the searches for the limits that one request can meet are bounded together for a file
// whose tenants all enforce other ones. Beyond the bound, classes of limits that exclude each other count.
func TestLevelsOfManyTenants(t *testing.T) {
	const limits = 40
	for _, tenants := range []int{0, 150} {
		var file strings.Builder
		file.WriteString("version: 1\ndefault_plan: p\nmax_levels: 10\nplans:\n  p:\n")
		for i := range limits { // two of each dimension exclude each other
			fmt.Fprintf(&file, "    - {id: l%d, by: [tenant], group: g%d, rate: 1/s, mode: shadow, when: {d%d: v%d}}\n", i, i, i/2, i%2)
		}
		tenant := func(name string, enforced func(i int) bool) {
			fmt.Fprintf(&file, "  %s: {plan: p, overrides: {", name)
			for i := range limits {
				if enforced(i) {
					fmt.Fprintf(&file, "l%d: {mode: enforce}, ", i)
				}
			}
			file.WriteString("}}\n")
		}
		file.WriteString("tenants:\n")
		for n := range tenants {
			tenant(fmt.Sprint("t", n), func(i int) bool { return i > 11 || n>>i&1 == 1 })
		}
		tenant("last", func(i int) bool { return i < 12 })
		_, _, err := config.ParseLimits("f", []byte(file.String()), limit.CompileOptions{})
		// The last tenant meets six of its twelve limits.
		if (err != nil) != (tenants > 0) || err != nil && strings.Contains(err.Error(), "could meet 12 ") {
			t.Errorf("behind %d tenants: %.300v", tenants, err)
		}
	}
}

// TestLevelsOfTenants: limits of one tenant each, in groups of their own, are no more than one for a request, however
// many there are.
func TestLevelsOfTenants(t *testing.T) {
	var file strings.Builder
	file.WriteString("version: 1\ndefault_plan: p\nmax_levels: 2\nplans:\n  p:\n    - {id: all, by: [tenant], rate: 9/s}\n")
	for i := range 1000 {
		fmt.Fprintf(&file, "    - {id: l%d, by: [tenant], group: g%[1]d, rate: 1/s, when: {tenant: t%[1]d}}\n", i)
	}
	set, _, err := config.ParseLimits("f", []byte(file.String()), limit.CompileOptions{})
	if err != nil || set.MaxEnforced() != 2 {
		t.Errorf("%d at once, %.300v", set.MaxEnforced(), err)
	}
}
