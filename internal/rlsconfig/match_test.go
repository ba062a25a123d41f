package rlsconfig

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive returns the descriptors that a request meets on each level, or nil: the rules of Match
// without its data structures.
func naive(level []drawn, entries []Entry) []drawn {
	if len(entries) == 0 {
		return nil
	}
	e := entries[0]
	ways := []func(drawn) bool{
		func(d drawn) bool { return d.value != "" && d.value == e.Value },
		func(d drawn) bool { return strings.Contains(d.value, "*") && glob(d.value, e.Value) },
		func(d drawn) bool { return d.value == "" },
	}
	for _, way := range ways {
		i := slices.IndexFunc(level, func(d drawn) bool { return d.key == e.Key && way(d) })
		if i < 0 {
			continue
		}
		met := level[i]
		if len(entries) > 1 {
			if rest := naive(met.below, entries[1:]); rest != nil {
				return append([]drawn{met}, rest...)
			}
			return nil
		}
		if met.limited || len(met.below) == 0 {
			return []drawn{met}
		}
		return nil
	}
	return nil
}

// glob reports whether a pattern matches text.
func glob(pattern, text string) bool {
	switch {
	case pattern == "":
		return text == ""
	case pattern[0] != '*':
		return text != "" && pattern[0] == text[0] && glob(pattern[1:], text[1:])
	}
	for i := range len(text) + 1 {
		if glob(pattern[1:], text[i:]) {
			return true
		}
	}
	return false
}

// TestMatchAgreesWithNaive compares Match with naive on random configurations and requests.
func TestMatchAgreesWithNaive(t *testing.T) {
	met := 0
	rapid.Check(t, func(rt *rapid.T) {
		number := 0
		level := drawLevel(rt, 3, &number)
		c := parsed(t, Options{}, fileOf("d", level))
		for range 20 {
			entries := drawEntries(rt)
			rule, want := c.Domain("d").Match(entries), naive(level, entries)
			if (rule == nil) != (want == nil) {
				rt.Fatalf("%v meets %+v, want %+v", entries, rule, want)
			}
			if rule == nil {
				continue
			}
			last := want[len(want)-1]
			if rule.Metadata["number"] != float64(last.number) || (rule.Limit != nil) != last.limited {
				rt.Fatalf("%v meets %+v, want %+v", entries, rule, last)
			}
			met++
		}
	})
	if met == 0 {
		t.Error("no request met a rule")
	}
}

// TestMatch has the rules of matching one by one, and what envoyproxy/ratelimit confuses.
func TestMatch(t *testing.T) {
	c := parsed(t, Options{}, File{"f", []byte(`
domain: d
descriptors:
- {key: one, value: "a*"}
- {key: one, value: "a*b"}
- {key: one, value: ab}
- {key: one, value: "*é*b*"}
- {key: one, descriptors: [{key: two}]}
- {key: one, value: x, descriptors: [{key: three}]}
- {key: ab, value: c_d}
- {key: col, value: "*"}
- {key: Case}
- {key: deep, rate_limit: {unit: day, requests_per_unit: 1}, descriptors: [{key: deep}]}
`)})
	for _, row := range []struct {
		name    string
		entries []Entry
		want    string
	}{
		{"exact before patterns", entriesOf("one", "ab"), "one_ab"},
		{"first pattern, not the longest", entriesOf("one", "axb"), "one_a*"},
		{"an asterisk is zero bytes", entriesOf("one", "a"), "one_a*"},
		{"an asterisk is a slash and any byte", entriesOf("one", "a/\xff"), "one_a*"},
		{"several asterisks", entriesOf("one", "éxb"), "one_*é*b*"},
		{"parts in their order", entriesOf("one", "bé"), ""},
		{"the text of a later pattern is exact", entriesOf("one", "a*b"), "one_a*b"},
		{"no value", entriesOf("one", "", "two", "x"), "one.two"},
		{"no backtracking to the descriptor without a value", entriesOf("one", "x", "two", "x"), ""},
		{"shorter than the rule", entriesOf("one", "q"), ""},
		{"longer than the rule", entriesOf("one", "q", "two", "x", "two", "x"), ""},
		{"limit above others", entriesOf("deep", "1"), "deep"},
		{"the same key twice", entriesOf("deep", "1", "deep", "2"), "deep.deep"},
		{"other case", entriesOf("case", "x"), ""},
		{"no entries", nil, ""},
		{"joined key and value", entriesOf("ab_c", "d"), ""},
		{"key that begins like a pattern", entriesOf("col_umn", "x"), ""},
		{"pattern of everything", entriesOf("col", ""), "col_*"},
	} {
		got := ""
		if rule := c.Domain("d").Match(row.entries); rule != nil {
			got = rule.Path
		}
		if got != row.want {
			t.Errorf("%s: %v meets %q, want %q", row.name, row.entries, got, row.want)
		}
	}
}

func TestHotPathAllocatesNothing(t *testing.T) {
	c := shop(t)
	long := strings.Repeat("/x", 200)
	name := make([]byte, 0, 1<<10)
	hash := func(dst []byte, value string) []byte { return append(dst, value[:3]...) }
	for _, row := range []struct {
		domain  string
		entries []Entry
	}{
		{"edge", entriesOf("path", "/login", "remote_address", "192.0.2.1")},
		{"edge", entriesOf("path", long)},
		{"models", entriesOf("model", "large-4", "team", "shop")},
	} {
		allocs := testing.AllocsPerRun(100, func() {
			name = c.Domain(row.domain).Match(row.entries).AppendCounter(name[:0], row.entries, hash)
			name = c.Domain(row.domain).AppendCounter(name[:0], row.entries, hash)
		})
		if allocs != 0 {
			t.Errorf("%s %.40q allocates %v times", row.domain, row.entries, allocs)
		}
	}
}

func BenchmarkCounter(b *testing.B) {
	c := shop(b)
	hash := func(dst []byte, value string) []byte { return append(dst, value...) }
	for name, row := range map[string]struct {
		domain  string
		entries []Entry
	}{
		"exact":   {"checkout", entriesOf("tier", "gold", "user", "batch-import")},
		"default": {"checkout", entriesOf("tier", "gold", "user", "ann")},
		"pattern": {"edge", entriesOf("path", "/downloads/a/release/b")},
		"long":    {"edge", entriesOf("path", strings.Repeat("/x", 200))},
		"none":    {"edge", entriesOf("path", "/login", "user", "ann")},
	} {
		b.Run(name, func(b *testing.B) {
			counter := make([]byte, 0, 1<<10)
			d := c.Domain(row.domain)
			b.ReportAllocs()
			for b.Loop() {
				if r := d.Match(row.entries); r != nil {
					counter = r.AppendCounter(counter[:0], row.entries, hash)
				}
			}
		})
	}
}
