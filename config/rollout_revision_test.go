package config

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// trialParts are the parts of a table with a revision 3.
func trialParts(tenants map[string]string) map[string]json.RawMessage {
	parts := map[string]json.RawMessage{
		"SHARED":    json.RawMessage(`{"version":1,"default_plan":"free","shared":[{"id":"ip","by":["ip"],"rate":"1000/m"}]}`),
		"PLAN#free": json.RawMessage(`[{"id":"tenant","by":["tenant"],"rate":"100/s"}]`),
		"PLAN#gold": json.RawMessage(`[{"id":"tenant","by":["tenant"],"rate":"1000/s"}]`),
		"REVISION#3": json.RawMessage(`{"SHARED":{"version":1,"default_plan":"free"},
			"PLAN#free":[{"id":"tenant","by":["tenant"],"rate":"50/s"},{"id":"op","by":["tenant","op"],"rate":"5/s"}],
			"PLAN#gold":[{"id":"tenant","by":["tenant"],"rate":"500/s"}]}`),
	}
	for name, body := range tenants {
		parts[table.PrefixTenant+name] = json.RawMessage(body)
	}
	return parts
}

// compileTrial compiles parts with a gate.
func compileTrial(parts map[string]json.RawMessage, gate table.Gate) (*limit.Set, error) {
	set, _, err := CompileParts("table", parts, strictOptions)
	if err != nil {
		return nil, err
	}
	return TryRevision("table", parts, set, gate, strictOptions)
}

// plansOf lists the plans and limits of tenants.
func plansOf(set *limit.Set, tenants ...string) string {
	var b strings.Builder
	for _, tenant := range tenants {
		fmt.Fprintf(&b, "%s on %s:", tenant, set.Plan(tenant))
		for _, l := range set.TenantLimits(tenant) {
			fmt.Fprintf(&b, " %s=%s at %s", l.ID, l.Describe(), set.IDs[l.Ordinal])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestTryRevision: the tenants of the gate's share have the revision's plans, with their
// own overrides; without the revision, or with one that cannot be used, none has.
func TestTryRevision(t *testing.T) {
	const in = "t1"
	parts := trialParts(map[string]string{in: `{"plan":"gold","overrides":{"tenant":{"rate":"7/s"}}}`})
	set, err := compileTrial(parts, table.Gate{Revision: 3, Percent: 100})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := plansOf(set, in, "nobody"), in+" on gold: tenant=7/s burst 7 at tenant\nnobody on free: tenant=50/s burst 50 at tenant op=5/s burst 5 at op\n"; got != want {
		t.Errorf("they have\n%s, not\n%s", got, want)
	}
	for name, gate := range map[string]table.Gate{"closed": {}, "of no tenant": {Revision: 3}, "of a missing revision": {Revision: 4, Percent: 100}} {
		if set, err := compileTrial(parts, gate); err != nil || plansOf(set, "nobody") != "nobody on free: tenant=100/s burst 100 at tenant ip=1000/m burst 1000 at ip\n" {
			t.Errorf("a gate that is %s: %v, %s", name, err, plansOf(set, "nobody"))
		}
	}
	for body, want := range map[string]string{
		`[]`: "read revision", `{"TENANT#a":{}}`: "neither a plan nor SHARED", `{"SHARED":{"version":1}}`: "there is no plan \"gold\"",
	} {
		parts["REVISION#3"] = json.RawMessage(body)
		set, err := compileTrial(parts, table.Gate{Revision: 3, Percent: 100})
		if err == nil || !strings.Contains(err.Error(), "try revision 3") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", body, err, want)
		}
		if next, _ := set.Trial(); next != nil {
			t.Errorf("%s is tried", body)
		}
	}
}

// TestChangeOnTrial: a set in which some tenants change while a revision is tried equals
// one compiled anew.
func TestChangeOnTrial(t *testing.T) {
	bodies := []string{"", `{"plan":"free"}`, `{"plan":"gold"}`, `{"plan":"gold","overrides":{"tenant":{"rate":"9/s"}}}`}
	rapid.Check(t, func(t *rapid.T) {
		gate := table.Gate{Revision: 3, Percent: rapid.Float64Range(0, 100).Draw(t, "percent")}
		tenants := map[string]string{}
		draw := func(label string) (name, body string) {
			return fmt.Sprint("t", rapid.IntRange(0, 9).Draw(t, label)), rapid.SampledFrom(bodies).Draw(t, label+" body")
		}
		for i := range 8 {
			if name, body := draw(fmt.Sprint("tenant ", i)); body != "" {
				tenants[name] = body
			}
		}
		set, err := compileTrial(trialParts(tenants), gate)
		if err != nil {
			t.Fatal(err)
		}
		some, removed := map[string]string{}, []string{}
		for i := range 3 {
			name, body := draw(fmt.Sprint("change ", i))
			delete(tenants, name)
			delete(some, name)
			if body != "" {
				tenants[name], some[name] = body, body
			} else {
				removed = append(removed, name)
			}
		}
		part, err := compileTrial(trialParts(some), gate)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := set.Change(part, removed, "")
		if !ok {
			t.Fatal("all has to be compiled anew")
		}
		want, err := compileTrial(trialParts(tenants), gate)
		if err != nil {
			t.Fatal(err)
		}
		all := []string{"nobody", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"}
		if plansOf(got, all...) != plansOf(want, all...) {
			t.Fatalf("it is\n%s, not\n%s", plansOf(got, all...), plansOf(want, all...))
		}
		if part, err = compileTrial(trialParts(some), table.Gate{Revision: 3, Percent: 100 - gate.Percent}); err != nil {
			t.Fatal(err)
		}
		if _, ok := set.Change(part, nil, ""); ok && gate.Share() != 5000 {
			t.Fatal("a set of another share is taken for a part")
		}
	})
}
