package rlsconfig

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExplain(t *testing.T) {
	c := shop(t)
	own := parsed(t, Options{}, File{"f", []byte(`
domain: own
descriptors:
- {key: path, value: /login, descriptors: [{key: User, rate_limit: {unit: day, requests_per_unit: 1}}]}
- {key: path, descriptors: [{key: ip, rate_limit: {unit: day, requests_per_unit: 1}}]}
- {key: plan, value: gold}
- {key: plan, value: silver-*}
`)}).Domain("own")
	for _, row := range []struct {
		domain          *Domain
		entries         string
		choices, reason string
	}{
		{c.Domain("edge"), "path=/login remote_address=192.0.2.1", "path_/login by value at edge.yaml:11, remote_address by key at edge.yaml:14", ""},
		{c.Domain("edge"), "path=/downloads/a/release/b", "path_/downloads/*/release/* by pattern at edge.yaml:18", ""},
		{c.Domain("edge"), "remote_address=10.20.30.40", "remote_address_10.20.30.40 by value at edge.yaml:7", ""},
		{c.Domain("edge"), "", "", "it has no entries"},
		{c.Domain("edge"), "path=/login", "path_/login by value at edge.yaml:11", `there is no limit at this depth: below it there is key "remote_address"; path_* of testdata/shop/edge.yaml:26 has these entries, but a selection is final, and a more exact descriptor was selected before`},
		{c.Domain("edge"), "user=ann", "", `entry 1: there is no key "user"; there are keys "path", "remote_address"`},
		{c.Domain("edge"), "pathh=/x", "", `entry 1: there is no key "pathh"; there are keys "path", "remote_address": did you mean path?`},
		{c.Domain("edge"), "remote_address=192.0.2.1 user=ann", "remote_address by key at edge.yaml:5", "entry 2: nothing is below entry 1, and a limit holds requests with exactly its entries"},
		{own, "plan=bronze", "", `entry 1: no value of key "plan" matches "bronze", and the key is not there without a value; there are "gold", "silver-*"`},
		{own, "path=/login user=ann", "path_/login by value at f:4", `entry 2: there is no key "user"; there is key "User", and upper case matters`},
		{own, "path=/login ip=192.0.2.1", "path_/login by value at f:4", `entry 2: there is no key "ip"; there is key "User"; path.ip of f:5 has these entries, but a selection is final, and a more exact descriptor was selected before`},
	} {
		var words []string
		for _, pair := range strings.Fields(row.entries) {
			key, value, _ := strings.Cut(pair, "=")
			words = append(words, key, value)
		}
		x := row.domain.Explain(entriesOf(words...))
		var choices []string
		for _, c := range x.Choices {
			choices = append(choices, fmt.Sprintf("%s by %s at %s:%d", c.Element, c.By, strings.TrimPrefix(c.File, "testdata/shop/"), c.Line))
		}
		if got := strings.Join(choices, ", "); got != row.choices || x.Reason != row.reason {
			t.Errorf("%s: the choices are\n%s\nfor the reason\n%s\nwant\n%s\n%s", row.entries, got, x.Reason, row.choices, row.reason)
		}
		if x.Rule != row.domain.Match(entriesOf(words...)) || (x.Rule == nil) != (x.Reason != "") {
			t.Errorf("%s meets %+v for the reason %q", row.entries, x.Rule, x.Reason)
		}
	}
}

// TestExplainAgreesWithMatch: the choices of an explanation are the path of the rule, and there is a
// reason exactly if there is no rule.
func TestExplainAgreesWithMatch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := 0
		c := parsed(t, Options{}, fileOf("d", drawLevel(rt, 3, &number)))
		for range 10 {
			entries := drawEntries(rt)
			x := c.Domain("d").Explain(entries)
			if rule := c.Domain("d").Match(entries); x.Rule != rule || (rule == nil) != (x.Reason != "") {
				rt.Fatalf("%v meets %+v, explained as %+v", entries, rule, x)
			}
			var path []string
			for _, c := range x.Choices {
				path = append(path, c.Element)
			}
			if x.Rule != nil && strings.Join(path, ".") != x.Rule.Path {
				rt.Fatalf("%v meets %s, explained by %q", entries, x.Rule.Path, path)
			}
		}
	})
}
