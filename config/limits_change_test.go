package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// The pools from which the plans and the shared limits of random files are drawn.
var (
	poolPlans = []string{
		`{"id": "tenant", "by": ["tenant"], "rate": "100/s", "burst": 200}`,
		`{"id": "user", "by": ["tenant", "user"], "rate": "7/s", "missing": "share", "replaces": ["tenant"]}`,
		`{"id": "upload", "by": ["tenant", "op"], "when": {"op": "PUT*"}, "rate": "5/s"}`,
		`{"id": "month", "by": ["tenant"], "group": "quota", "rate": "1000/month", "algorithm": "fixed_window"}`,
		`{"id": "trial", "by": ["tenant"], "when": {"op": "GET"}, "rate": "9/s", "mode": "shadow"}`,
		`{"id": "slots", "by": ["tenant"], "algorithm": "concurrency", "slots": 3}`,
		`{"id": "named", "by": ["tenant"], "when": {"tenant": "t0"}, "rate": "50/s"}`,
	}
	poolShared = []string{
		`{"id": "ip", "by": ["ip"], "rate": "20/s"}`,
		`{"id": "banned", "when": {"ip": "192.0.2.0/24"}, "action": "deny"}`,
		`{"id": "month", "by": ["op"], "rate": "3/s"}`,
	}
	poolOverrides = []string{
		`"tenant": {"rate": "1/s"}`, `"tenant": {"mode": "off"}`, `"user": {"rate": "2/s", "missing": "deny"}`, `"upload": {"action": "allow"}`,
		`"month": {"rate": "5/day"}`, `"slots": {"slots": 1}`, `"trial": {"mode": "enforce"}`, `"ghost": {"rate": "1/s"}`,
	}
	poolTenants = []string{"t0", "t1", "t2", "t3", "a#b"}
)

// some draws a few elements of a pool, in the order of the pool.
func some(rt *rapid.T, pool []string, label string) string {
	var out []string
	for _, s := range pool {
		if rapid.Bool().Draw(rt, label) {
			out = append(out, s)
		}
	}
	return strings.Join(out, ", ")
}

func drawRest(rt *rapid.T) map[string]json.RawMessage {
	parts := map[string]json.RawMessage{}
	shared := `{"version": 1, "shared": [` + some(rt, poolShared, "shared") + `]`
	if rapid.Bool().Draw(rt, "default") {
		shared += `, "default_plan": "p0"`
	}
	parts[table.KeyShared] = json.RawMessage(shared + "}")
	for i := range rapid.IntRange(1, 3).Draw(rt, "plans") {
		parts[fmt.Sprint(table.PrefixPlan, "p", i)] = json.RawMessage("[" + some(rt, poolPlans, "plan") + "]")
	}
	return parts
}

func drawTenant(rt *rapid.T) json.RawMessage {
	body := fmt.Sprintf(`{"plan": "p%d"`, rapid.IntRange(0, 3).Draw(rt, "plan of tenant"))
	if rapid.Bool().Draw(rt, "overrides any") {
		body += `, "overrides": {` + rapid.SampledFrom(poolOverrides).Draw(rt, "overrides") + `}`
	}
	return json.RawMessage(body + "}")
}

// detail formats all visible properties of a limit.
func detail(l *limit.Limit) string {
	return fmt.Sprint(l.ID, l.Plan, l.Tenant, l.Level(), l.When(), l.Describe(), l.Mode, l.Action, l.OnError, l.Missing, l.Params, l.Replaces, l.Ordinal)
}

// account formats the limits and decisions of a set for tenants.
func account(tb rapid.TB, set *limit.Set, tenants []string, reqs []limit.Request) []string {
	addrs, err := limit.NewAddrHasher([]byte("0123456789abcdef"), limit.Prefixes{})
	if err != nil {
		tb.Fatal(err)
	}
	out := []string{fmt.Sprint(set.IDs, set.File, set.Plans(), set.Tenants(), set.MaxEnforced())}
	for _, tenant := range tenants {
		out = append(out, tenant+" on "+set.Plan(tenant))
		for _, l := range set.TenantLimits(tenant) {
			out = append(out, detail(l))
		}
		for _, req := range reqs {
			req.Tenant = tenant
			var b limit.Buffer
			r := set.Resolve(&req, addrs, 1_800_000_000e6, &b)
			out = append(out, fmt.Sprint(r, b.Calls))
			for i := range b.Items {
				it := &b.Items[i]
				out = append(out, fmt.Sprint(it.Limit.ID, string(it.Name), it.KeyLen, it.TagLen, it.Cost, it.Verdict, it.Source, detail(it.Limit)))
			}
		}
	}
	var all []string
	for _, l := range set.All() {
		if set.IDs[l.Ordinal] != l.ID {
			tb.Fatalf("the ordinal of %s is that of %s", l.ID, set.IDs[l.Ordinal])
		}
		all = append(all, detail(l))
	}
	slices.Sort(all) // the order for all tenants is that of changes
	return append(out, all...)
}

func drawRequests(rt *rapid.T) []limit.Request {
	return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) limit.Request {
		req := limit.Request{Op: rapid.SampledFrom([]string{"", "GET", "PUT /x"}).Draw(rt, "op"), Cost: rapid.Int64Range(1, 9).Draw(rt, "cost")}
		if rapid.Bool().Draw(rt, "ip") {
			req.Addr = netip.MustParseAddr(rapid.SampledFrom([]string{"192.0.2.7", "198.51.100.1"}).Draw(rt, "addr"))
		}
		if rapid.Bool().Draw(rt, "user") {
			req.Dims = []limit.Dim{{Name: "user", Value: "u"}}
		}
		if rapid.Bool().Draw(rt, "slot") {
			req.ID, req.Hold, req.HoldFor = "id", limit.HoldSlot, limit.MinHold
		}
		return req
	}), 1, 4).Draw(rt, "requests")
}

// TestChange: a set that is changed tenant by tenant equals, in all visible properties,
// the set compiled anew from all parts, and both reject the same changes.
func TestChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		parts, reqs := drawRest(rt), drawRequests(rt)
		if rapid.Bool().Draw(rt, "t0 listed") {
			parts[table.PrefixTenant+"t0"] = drawTenant(rt)
		}
		set, _, err := CompileParts("table", parts, strictOptions)
		if err != nil {
			rt.Skip("a condition on a tenant that is not listed, or an id twice")
		}
		for range rapid.IntRange(1, 6).Draw(rt, "steps") {
			next, part, removed := maps.Clone(parts), map[string]json.RawMessage{}, []string{}
			for name, body := range parts {
				tenant, ok := strings.CutPrefix(name, table.PrefixTenant)
				if !ok || slices.Contains(set.Named(), tenant) {
					part[name] = body
				}
			}
			for _, tenant := range rapid.SliceOfNDistinct(rapid.SampledFrom(poolTenants), 1, 3, rapid.ID[string]).Draw(rt, "tenants") {
				if rapid.IntRange(0, 3).Draw(rt, "removed") == 0 {
					delete(next, table.PrefixTenant+tenant)
					delete(part, table.PrefixTenant+tenant)
					removed = append(removed, tenant)
					continue
				}
				next[table.PrefixTenant+tenant] = drawTenant(rt)
				part[table.PrefixTenant+tenant] = next[table.PrefixTenant+tenant]
			}
			set, parts = checkStep(rt, set, parts, next, part, removed, reqs)
		}
	})
}

// checkStep takes one step both ways, and returns the set and parts in use afterwards.
func checkStep(rt *rapid.T, set *limit.Set, parts, next, part map[string]json.RawMessage, removed []string, reqs []limit.Request) (*limit.Set, map[string]json.RawMessage) {
	tenants := append([]string{"not listed"}, poolTenants...)
	before := account(rt, set, tenants, reqs)
	want, _, wantErr := CompileParts("table", next, strictOptions)
	small, _, err := CompileParts("table", part, strictOptions)
	if (wantErr == nil) != (err == nil) {
		rt.Fatalf("all anew: %v\nonly what changed: %v\nin %s", wantErr, err, next)
	}
	if err != nil {
		return set, parts
	}
	got, ok := set.Change(small, removed, "v2")
	if !ok {
		rt.Fatal("Change reports a change of the other parts")
	}
	if a, b := account(rt, want, tenants, reqs), account(rt, got, tenants, reqs); !slices.Equal(a, b) {
		rt.Fatalf("anew:\n%s\nchanged:\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
	}
	if got.Version != "v2" || !slices.Equal(before, account(rt, set, tenants, reqs)) {
		rt.Fatal("the set that was changed is not what it was")
	}
	return got, next
}

// TestChangeOfOther: a part of other plans or shared limits is rejected.
func TestChangeOfOther(t *testing.T) {
	compile := func(shared, plan, more string) *limit.Set {
		parts := map[string]json.RawMessage{
			table.KeyShared: json.RawMessage(`{"version": 1, "shared": [` + shared + `]}`), table.PrefixPlan + "p": json.RawMessage(`[` + plan + `]`),
		}
		if more != "" {
			parts[table.PrefixPlan+more] = json.RawMessage("[]")
		}
		set, _, err := CompileParts("table", parts, strictOptions)
		if err != nil {
			t.Fatal(err)
		}
		return set
	}
	set := compile(poolShared[0], poolPlans[0], "")
	for name, part := range map[string]*limit.Set{
		"a shared limit less": compile("", poolPlans[0], ""), "a limit of a plan more": compile(poolShared[0], poolPlans[0]+","+poolPlans[2], ""),
		"a plan more": compile(poolShared[0], poolPlans[0], "q"),
	} {
		if _, ok := set.Change(part, nil, "v2"); ok {
			t.Errorf("%s: taken", name)
		}
	}
}
