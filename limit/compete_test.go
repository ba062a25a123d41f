package limit_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestCompete checks that limits of one level and group are together, the more specific first, and
// that those of mode off are left out.
func TestCompete(t *testing.T) {
	set := parse(t, `
version: 1
default_plan: p
plans:
  p:
    - {id: tenant, by: [tenant], rate: 10/s}
  bare: []
shared:
  - {id: ip, by: [ip], rate: 10/s}
  - {id: hourly, by: [ip], group: hourly, rate: 10/h}
  - {id: any, by: [ip], when: {op: "POST *"}, rate: 10/s}
  - {id: login, by: [ip], when: {op: "POST /login"}, rate: 1/s}
  - {id: office, by: [ip], when: {ip: 198.51.100.0/24}, action: allow}
  - {id: away, by: [ip], group: away, rate: 1/s, mode: "off"}
`)
	var got []string
	for _, g := range limit.Compete(set.All()) {
		var ids []string
		for _, l := range g {
			ids = append(ids, l.ID)
		}
		got = append(got, strings.Join(ids, " "))
	}
	if want := []string{"tenant", "login office any ip", "hourly"}; !slices.Equal(got, want) {
		t.Errorf("groups %q, want %q", got, want)
	}
	if plans := set.PlanNames(); !slices.Equal(plans, []string{"bare", "p"}) || set.DefaultPlan() != "p" {
		t.Errorf("plans %q, by default %q", plans, set.DefaultPlan())
	}
}

// TestClauses checks the conditions of limits as other packages see them.
func TestClauses(t *testing.T) {
	set := parse(t, `
version: 1
dimensions: {op: {values: ["POST /login", "GET /"]}, user: {}}
shared:
  - {id: a, by: [user], when: {op: "POST*", ip: 2001:db8::/32, user: u1}, rate: 10/s}
`)
	got := set.LimitByID("a").Clauses()
	slices.SortFunc(got, func(a, b limit.Clause) int { return strings.Compare(a.Dim, b.Dim) })
	want := []limit.Clause{
		{Dim: "ip", Net: netip.MustParsePrefix("2001:db8::/32")},
		{Dim: "op", Text: "POST", Declared: true},
		{Dim: "user", Text: "u1", Exact: true},
	}
	if !slices.Equal(got, want) {
		t.Errorf("clauses %+v, want %+v", got, want)
	}
}
