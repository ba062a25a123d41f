package limit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestLevelsOfManyTenants: the searches for the limits that one request can meet are bounded together for a file
// whose tenants all enforce other ones. Beyond the bound, all levels and groups count.
func TestLevelsOfManyTenants(t *testing.T) {
	const limits = 40
	for tenants, refused := range map[int]bool{0: false, 150: true} {
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
		if got := err != nil && strings.Contains(err.Error(), "could meet 12 enforced limits, more than max_levels (10)"); got != refused || refused == (err == nil) {
			t.Errorf("behind %d tenants: %.300v", tenants, err)
		}
	}
}
