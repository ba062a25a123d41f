package limit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// TestCosts checks that a limit with a cost charges it for every request, that a limit
// with a max_cost never admits a larger cost, and that the others charge the request's
// cost.
func TestCosts(t *testing.T) {
	set := parse(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: plain, by: [tenant], group: a, rate: 10/h}
    - {id: fixed, by: [tenant], group: b, rate: 10/h, cost: 3}
    - {id: capped, by: [tenant], group: c, rate: 10/h, max_cost: 4}
    - {id: window, by: [tenant], group: d, rate: 10/h, algorithm: fixed_window, max_cost: 4}
tenants:
  acme: {overrides: {fixed: {cost: 10}, capped: {max_cost: 10}, window: {action: allow}}}
`)
	for _, c := range []struct {
		tenant string
		cost   int64
		want   string // the units left in each limit, or never
	}{
		{"t", 1, "plain 9, fixed 7, capped 9, window 9"},
		{"t", 4, "plain 6, fixed 7, capped 6, window 6"},
		{"t", 5, "plain 5, fixed 7, capped never, window never"},
		{"t", 11, "plain never, fixed 7, capped never, window never"},
		{"t", bucket.MaxCost, "plain never, fixed 7, capped never, window never"},
		{"acme", 1, "plain 9, fixed 0, capped 9"},
		{"acme", 10, "plain 0, fixed 0, capped 0"},
	} {
		var b limit.Buffer
		set.Resolve(&limit.Request{Tenant: c.tenant, Cost: c.cost}, nil, 1_800_000_000e6, &b)
		var got []string
		for i := range b.Items {
			it := &b.Items[i]
			var state bucket.State
			v, _, _ := bucket.Decide(&it.Limit.Params, it.Bounds, &state, 1_800_000_000e6, it.Cost)
			says := "later"
			switch {
			case v.Allowed:
				says = fmt.Sprint(v.Remaining)
			case v.Wait == bucket.Never:
				says = "never"
			}
			got = append(got, it.Limit.ID+" "+says)
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s asks for %d: got %s, want %s", c.tenant, c.cost, strings.Join(got, ", "), c.want)
		}
	}
}
