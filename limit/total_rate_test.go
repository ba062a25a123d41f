package limit_test

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// TestTotalRate checks that the rate for all tenants together is that of a bucket for all
// tenants, the sum of the listed tenants, or the largest of one tenant, and that Why
// names which.
func TestTotalRate(t *testing.T) {
	const (
		head   = "version: 1\ndefault_plan: free\n"
		plans  = "plans:\n  free: [{id: t, by: [tenant], rate: 10/s}, {id: op, by: [tenant, op], rate: 1/s}]\n  pro: [{id: t, by: [tenant], rate: 600/m}, {id: day, by: [tenant], rate: 50000/s, group: g}]\n"
		listed = "tenants:\n  a: {plan: free}\n  b: {plan: pro}\n  c: {plan: free, overrides: {t: {rate: 5/2s}}}\n"
	)
	for name, c := range map[string]struct {
		file  string
		units int64
		why   string
	}{
		"listed":            {head + plans + listed, 23, "the limits of the listed tenants (3) admit together, and other tenants come on top"},
		"one bucket":        {head + plans + listed + "shared: [{id: all, by: [], rate: 90/m}]\n", 2, "limit all admits of all tenants, which it counts in one bucket"},
		"only watched":      {head + plans + listed + "shared: [{id: all, by: [], rate: 90/m, mode: shadow}]\n", 23, "the limits of the listed tenants (3)"},
		"of some":           {head + plans + listed + "shared: [{id: all, by: [], when: {op: x}, rate: 90/m}]\n", 23, "the limits of the listed tenants (3)"},
		"none listed":       {head + plans, 10, "plan free admits of one tenant"},
		"one unheld":        {head + plans + "  open: [{id: op, by: [tenant, op], rate: 1/s}]\n" + listed + "  d: {plan: open}\n", 10, "plan free admits of one tenant"},
		"default unheld":    {strings.Replace(head, "free", "open", 1) + plans + "  open: [{id: op, by: [tenant, op], rate: 1/s}]\n", 10, "and some tenants have no limit that holds all their requests"},
		"few listed":        {head + plans + "tenants: {c: {plan: free, overrides: {t: {rate: 1/s}}}}\n", 10, "the limits of the listed tenants (1)"},
		"allowed":           {head + "plans: {free: [{id: t, by: [tenant], rate: 1/s}, {id: office, by: [tenant], when: {ip: 10.0.0.0/8}, action: allow}]}\n", 0, `; "t" of plan free does not, as "office" takes its place for some requests`},
		"nobody held":       {head + "plans: {free: [{id: op, by: [tenant, op], rate: 1/s}]}\n", 0, "no enforced limit bounds all that a tenant takes in a second, such as one by: [tenant]"},
		"an exception":      {head + "plans: {free: [{id: t, by: [tenant], rate: 10/s}, {id: x, by: [tenant], when: {op: x}, rate: 5/s}]}\n", 15, "plan free"},
		"a free passage":    {head + "plans: {free: [{id: t, by: [tenant], rate: 10/s}, {id: x, by: [tenant], when: {op: x}, action: allow}]}\n", 0, "no enforced limit"},
		"replaced":          {head + "plans: {free: [{id: t, by: [tenant], rate: 10/s}, {id: x, by: [tenant, op], when: {op: x}, rate: 500/s, replaces: [t]}]}\n", 10, "plan free admits of one tenant; limits that replace one of these come on top"},
		"replaced beside":   {head + "plans: {free: [{id: t, by: [tenant], rate: 10/s}], big: [{id: t, by: [tenant], rate: 1000/s}, {id: x, by: [tenant], when: {op: x}, rate: 5/s, replaces: [t]}]}\n", 1005, "plan big admits of one tenant"},
		"watched replaces":  {head + "plans: {free: [{id: t, by: [tenant], rate: 10/s}, {id: x, by: [tenant, op], when: {op: x}, rate: 500/s, mode: shadow, replaces: [t]}]}\n", 10, "plan free admits of one tenant"},
		"all replaced":      {head + "plans: {free: [{id: t, by: [tenant], rate: 10/s}]}\nshared: [{id: all, by: [], rate: 90/s}, {id: x, by: [], when: {op: x}, rate: 5/s, replaces: [all]}]\n", 95, "limit all"},
		"every level":       {head + "plans: {free: [{id: t, by: [tenant], rate: 1/s}, {id: office, when: {ip: 10.0.0.0/8}, action: allow}]}\n", 1, "plan free admits of one tenant"},
		"of another plan":   {head + "plans: {free: [{id: t, by: [tenant], rate: 7/s}], open: [{id: any, action: allow}]}\nshared: [{id: all, by: [], rate: 90/s}]\n", 90, "limit all admits of all tenants"},
		"one bucket lifted": {head + "plans: {free: [{id: t, by: [tenant], rate: 7/s}], open: [{id: any, by: [], action: allow}]}\nshared: [{id: all, by: [], rate: 90/s}]\n", 7, "plan free admits of one tenant"},
		"its own cost":      {head + "plans: {free: [{id: t, by: [tenant], rate: 10/s, cost: 2}]}\n", 0, `lifts; "t" does not, as it is`},
		"a quota":           {head + "plans: {free: [{id: t, by: [tenant], rate: 10/d}]}\n", 0, `lifts; "t" does not, as it is`},
		"slots":             {head + "plans: {free: [{id: t, by: [tenant], algorithm: concurrency, slots: 5}]}\n", 0, "no enforced limit"},
		"in hundredths":     {head + "plans: {free: [{id: t, by: [tenant], rate: 1/7m}]}\n", 1, "plan free"},
		"summed exactly":    {head + "plans: {free: [{id: t, by: [tenant], rate: 1/10s}]}\ntenants: {" + strings.TrimSuffix(strings.Repeat("x#: {plan: free}, ", 10), ", ") + "}\n", 1, "the limits of the listed tenants (10)"},
		"without default":   {"version: 1\n" + plans + listed, 23, "other tenants come on top"},
	} {
		t.Run(name, func(t *testing.T) {
			file := c.file
			for i := 0; strings.Contains(file, "#"); i++ {
				file = strings.Replace(file, "#", string(rune('a'+i)), 1)
			}
			set, _, err := config.ParseLimits("f", []byte(file), limit.CompileOptions{})
			if err != nil {
				t.Fatal(err)
			}
			rounded := c.units == 23 || c.units == 2 || name == "in hundredths" // of 22.5/s, 90/m and 1/7m; the others are whole
			if got := set.TotalRate(); got.Units != c.units || got.Rounded != rounded || !strings.Contains(got.Why, c.why) || got.OneTenant != strings.Contains(got.Why, "of one tenant") {
				t.Errorf("%d because %s, want %d because %s", got.Units, got.Why, c.units, c.why)
			}
		})
	}
}
