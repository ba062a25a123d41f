package limit_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// overridden is a limits file with the shared limits first, and a tenant with the given
// overrides.
const overridden = `
version: 1
shared:
  - {id: ip, by: [ip], rate: 9/s}
plans:
  p:
    - {id: first, by: [tenant], rate: 100/s, burst: 200, max_cost: 150}
    - {id: second, by: [tenant, op], rate: 9/s}
tenants:
  t: {plan: p, overrides: {%s}}
`

// TestOverrides checks that an override changes the keys that it names, keeps the others,
// and takes the position of its limit in the plan.
func TestOverrides(t *testing.T) {
	for override, want := range map[string]string{
		`first: {rate: 500/s}`:                                        "first 500/s burst 200, max_cost 150, second 9/s burst 9, ip 9/s burst 9",
		`first: {burst: 300}`:                                         "first 100/s burst 300, max_cost 150, second 9/s burst 9, ip 9/s burst 9",
		`first: {rate: 500/s, burst: 900}`:                            "first 500/s burst 900, max_cost 150, second 9/s burst 9, ip 9/s burst 9",
		`first: {rate: 500/s, algorithm: sliding_window}`:             "first 500/s, max_cost 150, second 9/s burst 9, ip 9/s burst 9",
		`second: {rate: 1/s}`:                                         "first 100/s burst 200, max_cost 150, second 1/s burst 1, ip 9/s burst 9",
		`second: {rate: 1/s, burst: 2}, first: {on_error: closed}`:    "first 100/s burst 200, max_cost 150, second 1/s burst 2, ip 9/s burst 9",
		`second: {mode: shadow}, first: {rate: 300/s, max_cost: 180}`: "first 300/s burst 200, max_cost 180, second 9/s burst 9, ip 9/s burst 9",
	} {
		set, _, err := config.ParseLimits("limits.yaml", fmt.Appendf(nil, overridden, override), limit.CompileOptions{})
		if err != nil {
			t.Errorf("%s: %v", override, err)
			continue
		}
		var got []string
		for _, l := range set.TenantLimits("t") {
			got = append(got, l.ID+" "+l.Describe())
		}
		if is := strings.Join(got, ", "); is != want {
			t.Errorf("%s:\n%s, want\n%s", override, is, want)
		}
	}
}

// TestTiesOfVerdicts checks which of two limits with equal parts left binds: the plan's
// first, with an override in its limit's position, and a shared one last.
func TestTiesOfVerdicts(t *testing.T) {
	set, _, err := config.ParseLimits("limits.yaml", fmt.Appendf(nil, overridden, `first: {rate: 9/s, burst: 9, max_cost: 9}`), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	limits := set.TenantLimits("t")
	for _, ids := range [][2]string{{"first", "second"}, {"first", "ip"}, {"second", "ip"}} {
		var items []limit.Item
		for i := len(limits) - 1; i >= 0; i-- { // their order among the items does not matter
			if l := limits[i]; l.ID == ids[0] || l.ID == ids[1] {
				items = append(items, limit.Item{Limit: l, Source: limit.SourceStore, Verdict: bucket.Verdict{Allowed: true, Remaining: 4}})
			}
		}
		if d := limit.Merge(items); d.LimitID() != ids[0] {
			t.Errorf("of %v %s binds", ids, d.LimitID())
		}
	}
}

// TestMaxLevelsCountsEnforced checks that limits in the shadow do not count towards max_levels.
func TestMaxLevelsCountsEnforced(t *testing.T) {
	const file = "version: 1\nmax_levels: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: a, by: [tenant], rate: 1/s}\n    - {id: b, by: [tenant, op], rate: 1/s, mode: %s}\n"
	for mode, want := range map[string]bool{"shadow": true, "off": true, "enforce": false} {
		set, _, err := config.ParseLimits("limits.yaml", fmt.Appendf(nil, file, mode), limit.CompileOptions{})
		if (err == nil) != want || want && set.MaxEnforced() != 1 {
			t.Errorf("%s: %v", mode, err)
		}
	}
}
