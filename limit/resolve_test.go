package limit_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

func parse(tb testing.TB, yaml string) *limit.Set {
	tb.Helper()
	set, _, err := config.ParseLimits("test.yaml", []byte(yaml), limit.CompileOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	return set
}

func hasher(tb testing.TB) *limit.AddrHasher {
	tb.Helper()
	h, err := limit.NewAddrHasher([]byte("0123456789abcdef"), limit.Prefixes{})
	if err != nil {
		tb.Fatal(err)
	}
	return h
}

// applied returns the limits that apply to a request, as "id", or "id=verdict" for those
// that are decided already.
func applied(tb testing.TB, set *limit.Set, req limit.Request) string {
	tb.Helper()
	var b limit.Buffer
	set.Resolve(&req, hasher(tb), 1_800_000_000e6, &b)
	var out []string
	for i := range b.Items {
		it := &b.Items[i]
		s := it.Limit.ID
		if it.Limit.Mode == limit.ModeShadow {
			s += "?"
		}
		if it.Denies() {
			s += "=deny"
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

const composition = `
version: 1
default_plan: free
max_levels: 16
dimensions:
  region: {values: [eu, us]}
  user:
  api_key:
plans:
  free:
    - {id: tenant, by: [tenant], rate: 100/s}
    - {id: quota, by: [tenant], group: quota, rate: 1000/d}
    - {id: any-op, by: [tenant, op], rate: 10/s}
    - {id: v1, by: [tenant, op], when: {op: "GET /v1*"}, rate: 9/s}
    - {id: v1-a, by: [tenant, op], when: {op: "GET /v1/a*"}, rate: 8/s}
    - {id: v1-exact, by: [tenant, op], when: {op: "GET /v1/a"}, rate: 7/s}
    - {id: v1-eu, by: [tenant, op], when: {op: "GET /v1*", region: eu}, rate: 6/s}
    - {id: region, by: [tenant, region], rate: 5/s}
    - {id: trial, by: [tenant], rate: 1/s, mode: shadow}
    - {id: off, by: [tenant, user], rate: 1/s, mode: off}
  fine:
    - {id: tenant, by: [tenant], rate: 100/s}
    - {id: user, by: [tenant, user], rate: 10/s, replaces: [tenant]}
    - {id: chain, by: [tenant, "api_key|user|ip"], group: chain, rate: 10/s}
    - {id: shares, by: [tenant, api_key], rate: 1/s, missing: share}
    - {id: demands, by: [tenant, region], rate: 1/s, missing: deny, when: {op: "POST*"}}
tenants:
  acme: {plan: free, overrides: {any-op: {rate: 1/s}}}
  free-rider: {plan: free, overrides: {tenant: {action: allow}, quota: {action: deny}}}
  fine: {plan: fine}
shared:
  - {id: ip, by: [ip], rate: 1000/m}
  - {id: blocked, action: deny, when: {ip: 192.0.2.0/24}}
`

func TestComposition(t *testing.T) {
	set := parse(t, composition)
	addr, blocked := netip.MustParseAddr("203.0.113.7"), netip.MustParseAddr("192.0.2.200")
	dim := func(pairs ...string) []limit.Dim {
		var out []limit.Dim
		for i := 0; i < len(pairs); i += 2 {
			out = append(out, limit.Dim{Name: pairs[i], Value: pairs[i+1]})
		}
		return out
	}
	for _, c := range []struct {
		name string
		req  limit.Request
		want string
	}{
		{"levels and groups", limit.Request{Tenant: "t"}, "trial? tenant quota"},
		{"an op without conditions", limit.Request{Tenant: "t", Op: "PUT /"}, "trial? tenant quota any-op"},
		{"a prefix beats none", limit.Request{Tenant: "t", Op: "GET /v1/b"}, "trial? tenant quota v1"},
		{"the longer prefix", limit.Request{Tenant: "t", Op: "GET /v1/ab"}, "trial? tenant quota v1-a"},
		{"exact beats prefix", limit.Request{Tenant: "t", Op: "GET /v1/a"}, "trial? tenant quota v1-exact"},
		{"more conditions beat exact", limit.Request{Tenant: "t", Op: "GET /v1/a", Dims: dim("region", "eu")}, "trial? tenant quota v1-eu region"},
		{"case matters", limit.Request{Tenant: "t", Op: "get /v1/a"}, "trial? tenant quota any-op"},
		{"an undeclared value is no value", limit.Request{Tenant: "t", Dims: dim("region", "mars")}, "trial? tenant quota"},
		{"an override beats all of its plan", limit.Request{Tenant: "acme", Op: "GET /v1/a"}, "trial? tenant quota any-op"},
		{"shared beside the plan", limit.Request{Tenant: "t", Addr: addr}, "trial? tenant quota ip"},
		{"a ban", limit.Request{Tenant: "t", Addr: blocked}, "blocked=deny"},
		{"allow passes a level, deny refuses", limit.Request{Tenant: "free-rider"}, "quota=deny"},
		{"replaces", limit.Request{Tenant: "fine", Dims: dim("user", "u")}, "user chain shares"},
		{"nothing to replace with", limit.Request{Tenant: "fine"}, "tenant shares"},
		{"a chain takes the address", limit.Request{Tenant: "fine", Addr: addr}, "tenant chain shares ip"},
		{"a demanded dimension", limit.Request{Tenant: "fine", Op: "POST /"}, "demands=deny"},
		{"the demanded dimension", limit.Request{Tenant: "fine", Op: "POST /", Dims: dim("region", "us")}, "tenant shares demands"},
	} {
		if got := applied(t, set, c.req); got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// TestReplacesChain checks that each limit of a chain replaces the next one, in any order
// of the file.
func TestReplacesChain(t *testing.T) {
	limits := []string{
		"{id: a, by: [tenant, op, user], rate: 1/s, replaces: [b]}",
		"{id: b, by: [tenant, op], rate: 1/s, replaces: [c]}",
		"{id: c, by: [tenant], rate: 1/s}",
	}
	for _, order := range [][3]int{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {1, 0, 2}} {
		yaml := "version: 1\ndefault_plan: p\nplans:\n  p:\n"
		for _, i := range order {
			yaml += "    - " + limits[i] + "\n"
		}
		set := parse(t, yaml)
		req := limit.Request{Tenant: "t", Op: "x", Dims: []limit.Dim{{Name: "user", Value: "u"}}}
		if got := applied(t, set, req); got != "a" {
			t.Errorf("order %v: %q applies, want a", order, got)
		}
		for _, c := range set.Explain(&req) {
			if c.Applies != (c.Limit.ID == "a") {
				t.Errorf("order %v: EXPLAIN says of %s: %v, %s", order, c.Limit.ID, c.Applies, c.Reason)
			}
		}
	}
}

func TestNames(t *testing.T) {
	set := parse(t, composition)
	addr := netip.MustParseAddr("203.0.113.7")
	name := func(req limit.Request, id string) string {
		var b limit.Buffer
		set.Resolve(&req, hasher(t), 1_800_000_000e6, &b)
		for i := range b.Items {
			if it := &b.Items[i]; it.Limit.ID == id {
				return string(it.Name[:it.KeyLen]) + " + " + string(it.Name[it.KeyLen:])
			}
		}
		return "none"
	}
	hash := string(hasher(t).Append(nil, addr))
	for _, c := range []struct {
		req      limit.Request
		id, want string
	}{
		{limit.Request{Tenant: "t"}, "tenant", "lg:t:{t} + :tenant;t"},
		{limit.Request{Tenant: "a{b}%;c"}, "tenant", "lg:t:{a%7Bb%7D%25%3Bc} + :tenant;t"},
		{limit.Request{Tenant: "t", Op: "GET /x;y"}, "any-op", "lg:t:{t}:any-op;t;op=GET /x%3By + "},
		{limit.Request{Tenant: "t", Dims: []limit.Dim{{Name: "region", Value: "eu"}}}, "region", "lg:t:{t} + :region;t;region=eu"},
		{limit.Request{Tenant: "fine", Dims: []limit.Dim{{Name: "user", Value: "1.2.3.4"}}}, "chain", "lg:t:{fine}:chain;t;api_key|user|ip=1:1.2.3.4 + "},
		{limit.Request{Tenant: "fine", Addr: addr}, "chain", "lg:t:{fine}:chain;t;api_key|user|ip=2:" + hash + " + "},
		{limit.Request{Tenant: "fine"}, "shares", "lg:t:{fine}:shares;t;api_key + "},
		{limit.Request{Tenant: "fine", Dims: []limit.Dim{{Name: "api_key", Value: "="}}}, "shares", "lg:t:{fine}:shares;t;api_key== + "},
		{limit.Request{Tenant: "t", Addr: addr}, "ip", "lg:s:{ip;t;ip=" + hash + "} + "},
	} {
		if got := name(c.req, c.id); got != c.want {
			t.Errorf("%s of %+v: got %q, want %q", c.id, c.req, got, c.want)
		}
	}
}

// TestExplain checks the reasons for a request to which limits do not apply for every
// possible reason.
func TestExplain(t *testing.T) {
	set := parse(t, composition)
	var got []string
	for _, c := range set.Explain(&limit.Request{Tenant: "t", Op: "GET /v1/ab"}) {
		got = append(got, fmt.Sprintf("%s %v: %s", c.Limit.ID, c.Applies, c.Reason))
	}
	want := []string{
		"trial true: watches",
		"tenant true: applies to all of its level",
		"quota true: applies to all of its level",
		"v1-eu false: when region: eu does not hold: the request has no DIM region",
		"v1-exact false: when op: GET /v1/a does not hold",
		"v1-a true: most specific of its level",
		"v1 false: v1-a is more specific: its conditions are longer",
		"any-op false: v1-a is more specific: it has more conditions",
		"region false: no region",
		"ip false: no ip",
		"blocked false: when ip: 192.0.2.0/24 does not hold",
		"off false: its mode is off",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestExplainAllows: of two equally specific limits with action: allow a request meets the first, and no limit that
// they lift.
func TestExplainAllows(t *testing.T) {
	set := parse(t, "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: wide, by: [tenant], rate: 1/s}\n    - {id: a, by: [tenant], when: {x: '1'}, action: allow}\n    - {id: b, by: [tenant], when: {y: '1'}, action: allow}\n")
	req := &limit.Request{Tenant: "t", Dims: []limit.Dim{{Name: "x", Value: "1"}, {Name: "y", Value: "1"}}}
	for _, c := range set.Explain(req) {
		want := map[string]string{"a": "passes its level", "b": "a passes it already", "wide": "a is more specific: it has more conditions"}[c.Limit.ID]
		if c.Applies != (c.Limit.ID == "a") || c.Reason != want {
			t.Errorf("%s %v: %s, want %s", c.Limit.ID, c.Applies, c.Reason, want)
		}
	}
	var b limit.Buffer
	if set.Resolve(req, nil, 1_800_000_000e6, &b); len(b.Items) != 0 {
		t.Errorf("%d buckets count", len(b.Items))
	}
}

// TestExplainSlots: the reason of a limit of concurrency is that RL.ACQUIRE alone takes its slots, where it would.
func TestExplainSlots(t *testing.T) {
	set := parse(t, "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: wide, by: [tenant], algorithm: concurrency, slots: 2}\n    - {id: fine, by: [tenant], when: {op: x}, algorithm: concurrency, slots: 1, replaces: [wide]}\n")
	const slots = "only RL.ACQUIRE takes its slots"
	for op, want := range map[string]map[string]string{
		"x": {"fine": slots, "wide": "fine is more specific: it has more conditions"},
		"y": {"fine": "when op: x does not hold", "wide": slots},
	} {
		for _, c := range set.Explain(&limit.Request{Tenant: "t", Op: op}) {
			if c.Applies || c.Reason != want[c.Limit.ID] {
				t.Errorf("%s: %s %v: %s, want %s", op, c.Limit.ID, c.Applies, c.Reason, want[c.Limit.ID])
			}
		}
	}
}

// FuzzNames checks that different values never share a name, and that all
// buckets of a tenant share its tag.
func FuzzNames(f *testing.F) {
	f.Add("a", "b", "c", "d")
	f.Add("a}", "x", "a", "}x")
	f.Add("a%7D", "", "a}", "")
	f.Add("t", "a;op=b", "t", "a")
	set := parse(f, composition)
	addrs := hasher(f)
	f.Fuzz(func(t *testing.T, tenantA, opA, tenantB, opB string) {
		names := [2]string{}
		for i, v := range [2][2]string{{tenantA, opA}, {tenantB, opB}} {
			if limit.CheckName(v[0]) != nil || limit.CheckOp(v[1]) != nil {
				return
			}
			var b limit.Buffer
			set.Resolve(&limit.Request{Tenant: v[0], Op: v[1], Cost: 1}, addrs, 1_800_000_000e6, &b)
			slot := b.Items[0].HashSlot()
			for j := range b.Items {
				if it := &b.Items[j]; !it.Limit.SpansTenants() && it.HashSlot() != slot {
					t.Fatalf("tenant %q: %q and %q in different slots", v[0], b.Items[0].Name, it.Name)
				}
			}
			last := b.Items[len(b.Items)-1]
			names[i] = last.Limit.ID + " " + string(last.Name)
		}
		if same := tenantA == tenantB && opA == opB; same != (names[0] == names[1]) {
			t.Fatalf("(%q, %q) is called %q, (%q, %q) %q", tenantA, opA, names[0], tenantB, opB, names[1])
		}
	})
}

func TestMerge(t *testing.T) {
	a := &limit.Limit{ID: "a", Order: 0, Params: bucket.Params{Capacity: 10}}
	b := &limit.Limit{ID: "b", Order: 1, Params: bucket.Params{Capacity: 1 << 40}}
	item := func(l *limit.Limit, allowed bool, left, wait int64, s limit.Source) limit.Item {
		return limit.Item{Limit: l, Source: s, Verdict: bucket.Verdict{Allowed: allowed, Remaining: left, Wait: wait}}
	}
	for _, c := range []struct {
		name  string
		items []limit.Item
		want  string
	}{
		{"none", nil, "true  policy 0"},
		{"least left", []limit.Item{item(a, true, 5, 0, limit.SourceStore), item(b, true, 5, 0, limit.SourceStore)}, "true b store 0"},
		{"a tie goes to the first", []limit.Item{item(a, true, 5, 0, limit.SourceStore), item(b, true, 1<<39, 0, limit.SourceStore)}, "true a store 0"},
		{"one denial", []limit.Item{item(a, true, 0, 0, limit.SourceStore), item(b, false, 5, 7, limit.SourceStore)}, "false b store 7"},
		{"the longest wait", []limit.Item{item(a, false, 0, 8, limit.SourceStore), item(b, false, 5, 7, limit.SourceStore)}, "false a store 8"},
		{"never is the longest", []limit.Item{item(a, false, 0, 8, limit.SourceStore), item(b, false, 5, bucket.Never, limit.SourceStore)}, "false b store -1"},
		{"degraded anywhere", []limit.Item{item(a, true, 1, 0, limit.SourceStore), item(b, true, 1<<39, 0, limit.SourceBackstop)}, "true a backstop 0"},
		{"refused by policy beside a longer wait", []limit.Item{item(a, false, 0, 100, limit.SourcePolicy), item(b, false, 0, 7000, limit.SourceStore)}, "false b policy 7000"},
		{"policy stays policy", []limit.Item{item(a, false, 0, bucket.Never, limit.SourcePolicy), item(b, true, 1<<39, 0, limit.SourceBackstop)}, "false a policy -1 refused"},
		{"too costly beside a refusal with a wait", []limit.Item{item(a, false, 5, bucket.Never, limit.SourceStore), item(b, false, 0, 100, limit.SourcePolicy)}, "false a policy -1"},
	} {
		d := limit.Merge(c.items)
		got := fmt.Sprintf("%v %s %s %d", d.Allowed, d.LimitID(), d.Source, d.RetryAfter)
		if d.Refused {
			got += " refused"
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
