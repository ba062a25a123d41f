package rlsconfig

import (
	"strings"
	"testing"
)

// FuzzParse looks for files that make Parse panic, and for problems that are not a line with a place.
func FuzzParse(f *testing.F) {
	for _, m := range mistakes {
		if len(m.file) < 1<<10 {
			f.Add([]byte(m.file), false)
		}
	}
	files, err := ReadDir("testdata/shop")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		f.Add(file.Content, true)
	}
	f.Fuzz(func(t *testing.T, content []byte, merge bool) {
		c, problems := Parse([]File{{"a", content}, {"b", content}}, Options{MergeDomains: merge})
		checkResult(t, c, problems)
		c, problems = Parse([]File{{"a", content}}, Options{})
		checkResult(t, c, problems)
	})
}

// FuzzExtensions looks for the same among files of extensions.
func FuzzExtensions(f *testing.F) {
	f.Add([]byte("version: 1\ndomains: {shop: {on_error: closed, on_denied: count, rules: {tenant: {algorithm: token_bucket, burst: 5, lease: {size: 1, ttl: 1s}}, month: {calendar: true}}}}"))
	f.Add([]byte("version: 1\ndomains: {shop: {rules: {tenant.path_/login: {also: [{id: a, rate: 5/day, timezone: UTC}, {id: b, rate: 5/7s, lease: auto}]}, x: &a [*a]}}}"))
	f.Fuzz(func(t *testing.T, content []byte) {
		opts, err := Options{}.WithExtensions("x.yaml", content)
		if err != nil {
			return
		}
		c, problems := Parse([]File{{"a", []byte(extendedRules)}}, opts)
		checkResult(t, c, problems)
		if c == nil {
			return
		}
		for _, r := range c.Limited() {
			for _, of := range append([]Counted{r.Own}, r.Also...) {
				if l := of.Limit; l != nil && (l.Params.Capacity < 1 || l.Params.Period < 1) {
					t.Errorf("%s has %+v", r.Path, l.Params)
				}
			}
		}
	})
}

// FuzzDecodeXDS looks for the same among resources.
func FuzzDecodeXDS(f *testing.F) {
	f.Add(message(1, "r", 2, "d", 3, message(1, "k", 2, "v*", 3, message(1, 2, 2, 5, 4, "n", 5, message(1, "m")), 5, 1, 6, 1, 7, 1)))
	f.Add(message(2, "d", 3, message(1, "k", 4, message(1, "k", 3, message(3, 1)), 8, message(1, message(1, "m", 2, message(3, "v"))))))
	f.Fuzz(func(t *testing.T, resource []byte) {
		c, problems := DecodeXDS([][]byte{resource}, Options{})
		checkResult(t, c, problems)
	})
}

// checkResult checks what holds for every result: there is a Config exactly if there are no mistakes,
// each problem and each line is one line, and each rule has a counter.
func checkResult(t *testing.T, c *Config, problems Problems) {
	t.Helper()
	if (c == nil) != (problems.Err() != nil) {
		t.Fatalf("the config is %v, the problems are %v", c, problems)
	}
	for _, p := range problems {
		if text := p.String(); strings.ContainsAny(text, "\n\r") || p.Text == "" || p.File == "" {
			t.Errorf("the problem %q is no line", text)
		}
	}
	if c == nil {
		return
	}
	if lines := c.Lines(); len(lines) != len(c.limited) || strings.ContainsAny(strings.Join(lines, ""), "\n\r") {
		t.Errorf("the lines are %q", lines)
	}
	names := map[string]*Rule{}
	for _, rule := range c.limited {
		entries := make([]Entry, len(rule.steps))
		name := string(rule.AppendCounter(nil, entries, nil))
		if other := names[name]; other != nil {
			t.Errorf("%+v and %+v share the counter %s", other, rule, name)
		}
		names[name] = rule
	}
}
