package rlsconfig

import "testing"

// TestStatKeysVary checks which rules have values of requests in their labels: those of the first two levels,
// and never an address.
func TestStatKeysVary(t *testing.T) {
	const rules = `
domain: shop
descriptors:
  - key: a
    rate_limit: {unit: hour, requests_per_unit: 1}
    descriptors:
      - {key: b, rate_limit: {unit: hour, requests_per_unit: 1}}
      - {key: metered, value_to_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}
      - {key: exact, value: x, value_to_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}
      - {key: shared, value: "x*", share_threshold: true, value_to_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}
      - key: c
        descriptors: [{key: third, value_to_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}]
  - {key: remote_address, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}
  - key: masked_remote_address
    descriptors: [{key: d, detailed_metric: true, rate_limit: {unit: hour, requests_per_unit: 1}}]
`
	c, problems := Parse([]File{{Name: "rules.yaml", Content: []byte(rules)}}, Options{})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, row := range []struct {
		entries []Entry
		varies  bool
		want    string // of the first two levels
	}{
		{[]Entry{{"a", "1"}}, false, "a"},
		{[]Entry{{"a", "1"}, {"b", "2"}}, false, "a b"},
		{[]Entry{{"a", "1"}, {"metered", "2"}}, true, "a metered_2"},
		{[]Entry{{"a", "1"}, {"metered", ""}}, true, "a metered"},
		{[]Entry{{"a", "1"}, {"exact", "x"}}, false, "a exact_x"},
		{[]Entry{{"a", "1"}, {"shared", "xy"}}, false, "a shared_x*"},
		{[]Entry{{"a", "1"}, {"c", "2"}, {"third", "3"}}, false, "a c"},
		{[]Entry{{"remote_address", "10.0.0.1"}}, false, "remote_address"},
		{[]Entry{{"masked_remote_address", "10.0.0.0/8"}, {"d", "4"}}, true, "masked_remote_address d_4"},
	} {
		r := c.Domain("shop").Match(row.entries)
		got := string(r.AppendStatKey(nil, 0, row.entries))
		if len(row.entries) > 1 {
			got += " " + string(r.AppendStatKey(nil, 1, row.entries))
		}
		if r.StatKeysVary() != row.varies || got != row.want {
			t.Errorf("%v: %s, varies is %t, want %s, %t", row.entries, got, r.StatKeysVary(), row.want, row.varies)
		}
	}
}
