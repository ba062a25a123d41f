package config

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/examples"
	"github.com/limitgate/limitgate/limit"
)

// describe says all there is to say of the limits of a set.
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

// TestParts: a limits file that was taken apart and put together again means the same,
// and taken apart once more it has the same parts.
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
