package rlsconfig

import (
	"slices"
	"testing"
)

// shop parses the sample configuration.
func shop(t testing.TB) *Config {
	t.Helper()
	files, err := ReadDir("testdata/shop")
	if err != nil {
		t.Fatal(err)
	}
	return parsed(t, Options{}, files...)
}

// parsed parses files that have no mistakes.
func parsed(t testing.TB, opts Options, files ...File) *Config {
	t.Helper()
	c, problems := Parse(files, opts)
	if err := problems.Err(); c == nil || err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}

// entriesOf returns entries of keys and values by turns.
func entriesOf(words ...string) []Entry {
	var entries []Entry
	for pair := range slices.Chunk(words, 2) {
		entries = append(entries, Entry{pair[0], pair[1]})
	}
	return entries
}

func TestShop(t *testing.T) {
	c := shop(t)
	if got, want := c.Domains(), []string{"checkout", "edge", "models"}; !slices.Equal(got, want) {
		t.Errorf("the domains are %q, want %q", got, want)
	}
	want := []string{
		"checkout.anonymous: unit=DAY requests_per_unit=5, shadow_mode: false, quota_mode: false",
		"checkout.tier_gold.user: unit=MINUTE requests_per_unit=60, shadow_mode: false, quota_mode: false",
		"checkout.tier_gold.user_batch-import: unit=MINUTE requests_per_unit=6000, shadow_mode: false, quota_mode: false",
		"checkout.tier_silver.user: unit=MINUTE requests_per_unit=60, shadow_mode: false, quota_mode: false",
		"checkout.tier_silver.user_batch-import: unit=MINUTE requests_per_unit=6000, shadow_mode: false, quota_mode: false",
		"edge.path_*: unit=SECOND requests_per_unit=500, shadow_mode: true, quota_mode: false",
		"edge.path_/downloads/*/release/*: unit=HOUR requests_per_unit=100000, shadow_mode: false, quota_mode: false",
		"edge.path_/login.remote_address: unit=MINUTE requests_per_unit=10, shadow_mode: false, quota_mode: false",
		"edge.remote_address: unit=SECOND requests_per_unit=50, shadow_mode: false, quota_mode: false",
		"models.model_large-*.team: unit=MONTH requests_per_unit=10000000, shadow_mode: false, quota_mode: true",
		"models.team: unit=DAY requests_per_unit=2000000, shadow_mode: false, quota_mode: true",
		"models.team_research: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
	}
	if got := c.Lines(); !slices.Equal(got, want) {
		t.Errorf("the lines are\n%q, want\n%q", got, want)
	}
}

// TestShopRules has requests, the rules that they meet and the names of their counters.
func TestShopRules(t *testing.T) {
	c := shop(t)
	for _, row := range []struct {
		domain  string
		entries []Entry
		path    string // of the rule, or "" if there is none
		counter string
	}{
		{"edge", entriesOf("remote_address", "192.0.2.1"), "remote_address", "edge;remote_address:#192.0.2.1"},
		{"edge", entriesOf("remote_address", "10.20.30.40"), "remote_address_10.20.30.40", "edge;remote_address=#10.20.30.40"},
		{"edge", entriesOf("path", "/login", "remote_address", "192.0.2.1"), "path_/login.remote_address", "edge;path=/login;remote_address:#192.0.2.1"},
		{"edge", entriesOf("path", "/login"), "", ""},
		{"edge", entriesOf("path", "/downloads/a/release/b/c"), "path_/downloads/*/release/*", "edge;path=/downloads/*/release/*"},
		{"edge", entriesOf("path", "/a;b%"), "path_*", "edge;path=*:/a%3Bb%25"},
		{"edge", entriesOf("path", ""), "path_*", "edge;path=*:"},
		{"edge", entriesOf("path", "/", "remote_address", "192.0.2.1"), "", ""},
		{"edge", entriesOf("method", "GET"), "", ""},
		{"edge", nil, "", ""},
		{"checkout", entriesOf("tier", "gold", "user", "ann"), "tier_gold.user", "checkout;tier=gold;user:ann"},
		{"checkout", entriesOf("tier", "iron", "user", "ann"), "", ""},
		{"models", entriesOf("model", "large-4", "team", "shop"), "model_large-*.team", "models;model=large-*:large-4;team:shop"},
	} {
		d := c.Domain(row.domain)
		rule := d.Match(row.entries)
		if rule == nil || row.path == "" {
			if (rule == nil) != (row.path == "") {
				t.Errorf("%s %v meets %+v, want %q", row.domain, row.entries, rule, row.path)
			}
			continue
		}
		hash := func(dst []byte, value string) []byte { return append(append(dst, '#'), value...) }
		if got := string(rule.AppendCounter(nil, row.entries, hash)); rule.Path != row.path || got != row.counter {
			t.Errorf("%s %v meets %s with the counter %s, want %s with %s", row.domain, row.entries, rule.Path, got, row.path, row.counter)
		}
	}
	if c.Domain("shop") != nil {
		t.Error("there is an unknown domain")
	}
}

// TestShopFields looks at the fields of rules.
func TestShopFields(t *testing.T) {
	c := shop(t)
	batch := c.Domain("checkout").Match(entriesOf("tier", "silver", "user", "batch-import"))
	if *batch.Limit != (Policy{UnitMinute, 6000, false, "orders-batch"}) || !slices.Equal(batch.Replaces, []string{"orders-anonymous"}) ||
		batch.File != "testdata/shop/checkout.yaml" || batch.Line != 11 || batch.Domain != "checkout" {
		t.Errorf("the rule is %+v with %+v", batch, batch.Limit)
	}
	anonymous := c.Domain("checkout").Match(entriesOf("anonymous", "1"))
	if help, _ := anonymous.Metadata["help"].(map[string]any); help["retry"] != false || anonymous.Metadata["reason"] != "anonymous orders" {
		t.Errorf("the metadata is %v", anonymous.Metadata)
	}
	if exempt := c.Domain("edge").Match(entriesOf("remote_address", "10.20.30.40")); exempt.Limit != nil {
		t.Errorf("the exempt address has %+v", exempt.Limit)
	}
	trial := c.Domain("edge").Match(entriesOf("path", "/x"))
	if !trial.Shadow || trial.Quota || !trial.DetailedMetric {
		t.Errorf("the rule on trial is %+v", trial)
	}
	if research := c.Domain("models").Match(entriesOf("team", "research")); *research.Limit != (Policy{Unlimited: true}) {
		t.Errorf("the unlimited rule has %+v", research.Limit)
	}
}
