package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/accesslog"
	"github.com/limitgate/limitgate/limit"
)

// TestLocalPlacement: a limit of each proxy by itself is decided as by one proxy.
func TestLocalPlacement(t *testing.T) {
	set, _, err := config.ParseLimits("f", []byte("{version: 1, default_plan: p, plans: {p: [{id: own, by: [tenant], rate: 3/h, store: local}]}}"), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := newLocal(set, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		at := time.Date(2026, 3, 1, 10, 0, i, 0, time.UTC)
		out, err := l.decide(t.Context(), []asked{{at: at, req: limit.Request{Tenant: "t", Cost: 1}}})
		if err != nil || out[0].allowed != (i < 3) || !out[0].allowed && out[0].limitID != "own" {
			t.Errorf("request %d: %+v, %v", i, out, err)
		}
	}
}

// TestRefusals: requests that lack a dimension of a limit with missing: deny have a warning of their limit, enforced or not, unless a ban
// refuses them anyway.
func TestRefusals(t *testing.T) {
	const log = `198.51.100.1 - anna [01/Mar/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 10
198.51.100.1 - - [01/Mar/2026:10:00:01 +0000] "GET / HTTP/1.1" 200 10
198.51.100.1 - - [01/Mar/2026:10:00:02 +0000] "GET / HTTP/1.1" 200 10
`
	for limits, want := range map[string]string{
		"{id: a, by: [tenant, user], rate: 9/h, missing: deny}":                                                 "2 of 3 were denied for want of user, without which a denies (missing: deny): no other limit counts them",
		"{id: a, by: [tenant, user], rate: 9/h, missing: deny, mode: shadow}":                                   "2 of 3 would be denied for want of user, without which a denies (missing: deny), if it were enforced",
		"{id: a, by: [tenant, user], rate: 9/h, missing: deny}, {id: ban, action: deny, when: {op: \"GET /\"}}": "",
		"{id: a, by: [tenant, user], rate: 9/h, missing: share}":                                                "",
	} {
		set, _, err := config.ParseLimits("f", []byte("{version: 1, default_plan: p, plans: {p: ["+limits+"]}}"), limit.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Local(t.Context(), strings.NewReader(log), set, Options{Tenant: template(t, "t"), Op: template(t, "{method} {path}"), Dims: map[string]*accesslog.Template{"user": template(t, "{user}")}})
		if err != nil {
			t.Fatal(err)
		}
		if found := strings.Contains(strings.Join(r.Warnings, "\n"), "for want of"); want == "" && found || want != "" && !slices.Contains(r.Warnings, want) {
			t.Errorf("%s: %q", limits, r.Warnings)
		}
	}
}

// TestRefusalsOfMany: a report names some limits that refuse requests for want of a dimension, and counts the others.
func TestRefusalsOfMany(t *testing.T) {
	for n, want := range map[int]string{8: "", 9: "requests also lack a dimension of 1 more limit with missing: deny", 12: "requests also lack a dimension of 4 more limits with missing: deny"} {
		all := refusals{}
		for i := range n {
			id := fmt.Sprint("l", i)
			all[[2]string{"p", id}] = &refused{limit: &limit.Limit{ID: id, Plan: "p", Ordinal: i}, would: 60}
		}
		got := all.warnings(60)
		if len(got) != min(n, 8)+min(len(want), 1) || want != "" && got[len(got)-1] != want {
			t.Errorf("%d limits: %q", n, got)
		}
	}
}

// template returns a template.
func template(t *testing.T, text string) *accesslog.Template {
	t.Helper()
	parsed, err := accesslog.ParseTemplate(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
