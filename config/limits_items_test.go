package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/examples"
	"github.com/limitgate/limitgate/limit"
)

// describe formats the limits of a set.
func describe(set *limit.Set, tenants ...string) string {
	var b strings.Builder
	for _, t := range append(tenants, "not listed") {
		b.WriteString(t + " on " + set.Plan(t) + "\n")
		for _, l := range set.TenantLimits(t) {
			b.WriteString(strings.Join([]string{l.ID, l.Plan, l.Tenant, strings.Join(l.Level(), ","), strings.Join(l.When(), ","), l.Describe(), l.Mode.String(), l.OnError.String(), l.Params.Algorithm.String(), "\n"}, "; "))
		}
	}
	return b.String()
}

// TestParts: a limits file that is split and joined again has the same limits, and split
// once more it has the same parts.
func TestParts(t *testing.T) {
	const odd = `{"version": 1, "max_levels": 9, "dimensions": {"region": {"values": ["eu", "us"]}, "user": null},
		"plans": {"a#b": [{"id": "x", "by": ["tenant", "region"], "rate": "1/s", "cost": 1, "missing": "deny"}], "empty": []},
		"tenants": {"null": {"plan": "a#b"}, "7": {"plan": "a#b", "overrides": {"x": {"rate": "2/s"}}}, "TENANT#{}": {"plan": "empty"}, "- :": {"plan": "empty"}}}`
	for name, content := range map[string]string{"sample": string(examples.Limits), "odd": odd} {
		want, _, err := ParseLimits(name, []byte(content), strictOptions)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := SplitLimits(name, []byte(content))
		if err != nil {
			t.Fatal(err)
		}
		joined, err := JoinLimits(parts)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := ParseLimits("joined", joined, strictOptions)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", name, err, joined)
		}
		tenants := []string{"acme", "globex", "null", "7", "TENANT#{}", "- :"}
		if a, b := describe(want, tenants...), describe(got, tenants...); a != b {
			t.Errorf("%s means\n%s\njoined\n%s", name, a, b)
		}
		again, err := SplitLimits("joined", joined)
		if err != nil || !maps.EqualFunc(parts, again, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
			t.Errorf("%s: parts %s, again %s: %v", name, slices.Sorted(maps.Keys(parts)), slices.Sorted(maps.Keys(again)), err)
		}
	}
}

// TestJoinNulls: the file of items that an earlier release took, with nulls that a file may not have, means what they mean.
func TestJoinNulls(t *testing.T) {
	parts := map[string]json.RawMessage{
		table.KeyShared: json.RawMessage(`{"version":"1","default_plan":"p","dimensions":{"user":null,"when":null},"shared":[{"id":"s","by":["ip"],"when":null,"rate":"9/s"}]}`),
		"PLAN#p":        json.RawMessage(`[{"id":"t","by":["tenant"],"when":null,"rate":"9/s"},{"id":"w","by":["tenant","when"],"rate":"2/s"},{"id":"op","by":["tenant"],"when":{"op":"GET *"},"rate":"1/s"}]`),
		"TENANT#acme":   json.RawMessage(`{"plan":"p","overrides":{"t":null}}`),
		"TENANT#beta":   json.RawMessage(`{"plan":"p","overrides":{"t":{}}}`),
		"TENANT#inner":  json.RawMessage(`{"plan":"p","overrides":{"op":{"rate":"7/s","when":null}}}`),
		"TENANT#none":   json.RawMessage(`null`),
	}
	want, _, err := CompileParts("parts", parts, limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	joined, err := JoinLimits(parts)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := ParseLimits("joined", joined, limit.CompileOptions{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, joined)
	}
	if a, b := describe(want, "acme", "beta", "inner", "none"), describe(got, "acme", "beta", "inner", "none"); a != b {
		t.Errorf("the items mean\n%s\njoined\n%s\n%s", a, b, joined)
	}
}

// TestPartsKeepWords: scalars of a file are text, and stay text in its parts, whatever
// type YAML gives them.
func TestPartsKeepWords(t *testing.T) {
	const content = `version: 1
default_plan: 1.10
dimensions: {region: {values: [1.0, 007, yes, null_, 2026-01-01, 0x1F, 1e3]}, 2.50: null, k: {hash: true}}
plans:
  1.10:
    - {id: 1.0, by: [tenant, region], when: {region: 007}, rate: 1/s, burst: 010}
    - &a {id: date, by: [tenant, region], when: {region: 2026-01-01}, rate: 1/s}
    - {id: hex, by: [tenant, region], when: {region: 0x1F}, rate: 1/s}
    - {id: float, by: [tenant, region], when: {region: 1e3}, rate: 1/s, replaces: []}
    - {id: "<&>", by: [tenant, "2.50"], rate: 1/s}
    - {id: k, by: [tenant, k], when: {k: true}, rate: 1/s}
  empty: []
tenants:
  7: {plan: 1.10, overrides: {1.0: {burst: 1}}}
  t: null
shared: null
`
	good := strings.Replace(content, `"<&>"`, "other", 1)
	want, _, err := ParseLimits("words", []byte(good), strictOptions)
	if err != nil {
		t.Fatal(err)
	}
	parts, err := SplitLimits("words", []byte(good))
	if err != nil {
		t.Fatal(err)
	}
	compiled, _, err := CompileParts("parts", parts, strictOptions)
	if err != nil {
		t.Fatalf("%v of %s", err, parts)
	}
	if a, b := describe(want, "7", "t"), describe(compiled, "7", "t"); a != b {
		t.Errorf("the file means\n%s\nits parts\n%s", a, b)
	}
	if shared := string(parts[table.KeyShared]); !strings.Contains(shared, `{"hash":true}`) {
		t.Errorf("a boolean becomes another value in %s", shared)
	}
	joined, err := JoinLimits(parts)
	if err != nil {
		t.Fatal(err)
	}
	got, _, err := ParseLimits("joined", joined, strictOptions)
	if err != nil {
		t.Fatalf("%v in\n%s", err, joined)
	}
	if a, b := describe(want, "7", "t"), describe(got, "7", "t"); a != b {
		t.Errorf("the file means\n%s\njoined\n%s", a, b)
	}
	again, err := SplitLimits("joined", joined)
	if err != nil || !maps.EqualFunc(parts, again, func(a, b json.RawMessage) bool { return string(a) == string(b) }) {
		t.Errorf("parts %s, again %s: %v", parts, again, err)
	}
}

// TestJoinJSON: characters that JSON escapes and YAML does not stay the same in a file.
func TestJoinJSON(t *testing.T) {
	parts := map[string]json.RawMessage{
		"SHARED": json.RawMessage(`{"version": 1}`), "PLAN#p": json.RawMessage(`[{"id": "a", "by": ["tenant"], "when": {"op": "\ud83d\ude00\/x"}, "rate": "1/s"}]`),
	}
	joined, err := JoinLimits(parts)
	if err != nil {
		t.Fatal(err)
	}
	again, err := SplitLimits("joined", joined)
	if err != nil || !strings.Contains(string(again["PLAN#p"]), "\U0001F600/x") {
		t.Errorf("%s becomes %s, %v", joined, again, err)
	}
}

// TestPause: compiling many tenants pauses now and then, compiling few never.
func TestPause(t *testing.T) {
	for tenants, want := range map[int]int{0: 0, 63: 0, 64: 1, 1000: 15} {
		pauses := 0
		if _, _, err := CompileParts("crowd", crowdedParts(tenants), limit.CompileOptions{Pause: func() { pauses++ }}); err != nil || pauses != want {
			t.Errorf("%d tenants: %d pauses, want %d: %v", tenants, pauses, want, err)
		}
	}
}

// TestCompilePartsMistakes: a part that cannot be used is an error, whatever it is.
func TestCompilePartsMistakes(t *testing.T) {
	const shared, plan = `{"version": 1}`, `[{"id": "a", "by": ["tenant"], "rate": "1/s"}]`
	for _, c := range []struct{ shared, plan, tenant, want string }{
		{`null`, plan, `{"plan": "p"}`, "SHARED"},
		{`7`, plan, `{"plan": "p"}`, "SHARED"},
		{`{"version": 1, "plans": {"q": []}}`, plan, `{"plan": "p"}`, "SHARED"},
		{`{"version": 1, "tenants": {"u": {"plan": "p"}}}`, plan, `{"plan": "p"}`, "SHARED"},
		{`{"version": 1} {}`, plan, `{"plan": "p"}`, "SHARED"},
		{shared, `[`, `{"plan": "p"}`, "PLAN#p"},
		{shared, `7`, `{"plan": "p"}`, "plans.p"},
		{shared, `[{"include": "l"}]`, `{"plan": "p"}`, "plans.p[0]: the items of a table have no lists to include: write the limits here"},
		{shared, plan, `{"plan": "p"}, "u": {}`, "TENANT#t"},
		{shared, plan, `{"plan": "p", "plan": "p"}`, "already there"},
		{shared, plan, ``, "TENANT#t"},
	} {
		_, _, err := CompileParts("table", map[string]json.RawMessage{
			table.KeyShared: json.RawMessage(c.shared), table.PrefixPlan + "p": json.RawMessage(c.plan), table.PrefixTenant + "t": json.RawMessage(c.tenant),
		}, strictOptions)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestPartLinesOfShared: shared limits have a line each, and what is beside them another.
func TestPartLinesOfShared(t *testing.T) {
	got := PartLines(json.RawMessage(`{"version":1,"default_plan":"free","shared":[{"id":"a","by":["ip"]},{"id":"b","by":["op"]}]}`))
	want := []string{"{id: a, by: [ip]}", "{id: b, by: [op]}"}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%q: there is no line %s", got, line)
		}
	}
	if !slices.Contains(got, "{default_plan: free}") || len(got) != 4 {
		t.Errorf("%q", got)
	}
}

// TestPartLinesBeside: what is beside shared limits has a line each without them, too, and null has none.
func TestPartLinesBeside(t *testing.T) {
	for part, want := range map[string][]string{
		`{"version":1,"max_levels":9}`: {"{version: 1}", "{max_levels: 9}"},
		`{"version":1,"shared":[]}`:    {"{version: 1}"},
		`null`:                         nil,
		`{"plan":"free","overrides":{"a":{"rate":"1/s"}}}`:      {"{overrides: {a: {rate: 1/s}}, plan: free}"},
		`[{"id":"a","by":["ip"]},{"by":["op"],"id":"version"}]`: {"{id: a, by: [ip]}", "{id: version, by: [op]}"},
	} {
		if got := PartLines(json.RawMessage(part)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", part, got, want)
		}
	}
}

// TestEmptyValuesOfItems: an item of a table may have an override without content, and null for no condition, which are mistakes of a
// file: proxies go on with what was pushed once.
func TestEmptyValuesOfItems(t *testing.T) {
	parts := map[string]json.RawMessage{
		table.KeyShared: json.RawMessage(`{"version":1,"default_plan":"free"}`),
		"PLAN#free":     json.RawMessage(`[{"id":"tenant","by":["tenant"],"when":null,"rate":"1/s"}]`),
		"TENANT#acme":   json.RawMessage(`{"overrides":{"tenant":{}}}`),
	}
	if _, _, err := CompileParts("t", parts, limit.CompileOptions{}); err != nil {
		t.Error(err)
	}
}
