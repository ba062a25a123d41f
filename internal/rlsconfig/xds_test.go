package rlsconfig

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"pgregory.net/rapid"
)

// TestFileAndResourceAgree reads random domains from a file and from a resource.
func TestFileAndResourceAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		number := 0
		level := unshared(drawLevel(rt, 3, &number))
		file := parsed(t, Options{}, fileOf("d", level))
		resource, problems := DecodeXDS([][]byte{resourceOf("r", "d", level)}, Options{})
		if resource == nil {
			rt.Fatal(problems)
		}
		if !slices.Equal(file.Lines(), resource.Lines()) {
			rt.Fatalf("the file has\n%q and the resource\n%q", file.Lines(), resource.Lines())
		}
		for range 10 {
			entries := drawEntries(rt)
			a, b := file.Domain("d").Match(entries), resource.Domain("d").Match(entries)
			if (a == nil) != (b == nil) || a != nil && (a.Metadata["number"] != b.Metadata["number"] || b.File != "r" || b.Line != 0) {
				rt.Fatalf("%v meets %+v in the file and %+v in the resource", entries, a, b)
			}
		}
	})
}

// unshared removes share_threshold, which a resource has not.
func unshared(level []drawn) []drawn {
	for i := range level {
		level[i].shared = false
		unshared(level[i].below)
	}
	return level
}

// message appends fields to nothing: pairs of a number and a string, a message or an int.
func message(fields ...any) []byte {
	var m []byte
	for pair := range slices.Chunk(fields, 2) {
		number := protowire.Number(pair[0].(int))
		switch value := pair[1].(type) {
		case int:
			m = appendNumber(m, number, value)
		case string:
			m = appendString(m, number, value)
		case []byte:
			m = appendString(m, number, string(value))
		}
	}
	return m
}

func TestDecodeXDS(t *testing.T) {
	replaced := message(1, "other")
	policy := message(1, 5, 4, "mine", 5, replaced, 9, "unknown", 2, "of another type")
	text, flag := message(1, message(1, "text", 2, message(3, "v"))), message(1, message(1, "flag", 2, message(4, 1)))
	descriptor := message(1, "k", 2, "v", 3, message(2, 7), 3, policy, 5, 1, 6, 1, 7, 1, 8, text, 8, flag)
	c, problems := DecodeXDS([][]byte{
		message(1, "first", 2, "d", 3, descriptor, 3, message(1, "free", 3, message(3, 1))),
		message(2, "e", 3, message(1, "k", 3, message(1, int(UnitYear)))),
	}, Options{})
	const warning = `first: descriptors[0].rate_limit.replaces[0].name: warning: no limit of domain "d" has the name "other", so nothing is replaced`
	if show(problems) != warning {
		t.Fatal(show(problems))
	}
	want := []string{
		"d.free: unit=UNKNOWN requests_per_unit=0, shadow_mode: false, quota_mode: false",
		"d.k_v: unit=MONTH requests_per_unit=7, shadow_mode: true, quota_mode: true",
		"e.k: unit=YEAR requests_per_unit=0, shadow_mode: false, quota_mode: false",
	}
	if got := c.Lines(); !slices.Equal(got, want) {
		t.Errorf("the lines are\n%q, want\n%q", got, want)
	}
	rule := c.Domain("d").Match(entriesOf("k", "v"))
	if !rule.DetailedMetric || rule.Limit.Name != "mine" || fmt.Sprint(rule.Replaces, rule.Metadata) != "[other] map[flag:true text:v]" || rule.File != "first" {
		t.Errorf("the rule is %+v with %+v", rule, rule.Limit)
	}
	if file := c.Domain("e").Match(entriesOf("k", "")).File; file != "resource 2" {
		t.Errorf("a resource without a name is %s", file)
	}
}

// TestMistakesOfResources has broken resources with all problems, which have the texts of those of
// files.
func TestMistakesOfResources(t *testing.T) {
	limited := func(policy []byte) []byte {
		return message(1, "r", 2, "d", 3, message(1, "k", 3, policy))
	}
	nested := message(1, "k")
	for range maxDepth {
		nested = message(1, "k", 4, nested)
	}
	deep := message(3, "v")
	for range 200 {
		deep = message(6, message(1, deep))
	}
	for _, row := range []struct {
		name      string
		resources [][]byte
		want      string
	}{
		{"no domain", [][]byte{message(1, "r")}, "r: domain: a configuration needs the name of its domain: write domain: NAME"},
		{"empty message", [][]byte{nil}, "resource 1: domain: a configuration needs the name of its domain: write domain: NAME"},
		{"same domain", [][]byte{message(1, "r", 2, "d"), message(1, "s", 2, "d")}, `s: domain: domain "d" is there already, see domain of r: join them, or set MERGE_DOMAIN_CONFIG=true, as --rls-merge-domains does`},
		{"no key", [][]byte{message(1, "r", 2, "d", 3, message(2, "v"))}, "r: descriptors[0].key: a descriptor needs a key: write key: NAME"},
		{"key twice", [][]byte{message(1, "r", 2, "d", 3, message(1, "k"), 3, message(1, "k"))}, `r: descriptors[1]: key "k" without a value is there already, see descriptors[0]: remove one of them`},
		{"no unit", [][]byte{limited(nil)}, "r: descriptors[0].rate_limit.unit: the unit is missing: write second, minute, hour, day, week, month or year"},
		{"undefined unit", [][]byte{limited(message(1, 99))}, `r: descriptors[0].rate_limit.unit: "99" is not a unit; write second, minute, hour, day, week, month or year`},
		{"unlimited with a unit", [][]byte{limited(message(1, 1, 3, 1))}, "r: descriptors[0].rate_limit.unit: an unlimited descriptor has no unit: remove one of unit and unlimited"},
		{"replaces itself", [][]byte{limited(message(1, 1, 4, "x", 5, message(1, "x"), 5, []byte{}))}, `r: descriptors[0].rate_limit.replaces[0].name: a limit cannot replace itself: remove "x"` + "\n" +
			"r: descriptors[0].rate_limit.replaces[1].name: the name of the limit to replace is missing"},
		{"no text", [][]byte{message(1, "\xff", 2, "d", 3, message(1, "k\xff", 2, "\xff"))}, `"\xff": name: it is not text in UTF-8` + "\n" +
			`"\xff": descriptors[0].key: it is not text in UTF-8` + "\n" + `"\xff": descriptors[0].value: it is not text in UTF-8`},
		{"cut off", [][]byte{message(1, "r", 2, "d")[:5]}, "r: not readable as a RateLimitConfig: the message is malformed"},
		{"cut off below", [][]byte{message(1, "r", 2, "d", 3, message(1, "k", 3, "\x08"))}, "r: not readable as a RateLimitConfig: the message is malformed"},
		{"broken metadata", [][]byte{message(1, "r", 2, "d", 3, message(1, "k", 8, "\x08"))}, "r: descriptors[0].metadata: it is not a Struct, or nests deeper than 64 levels"},
		{"deep metadata", [][]byte{message(1, "r", 2, "d", 3, message(1, "k", 8, message(1, message(1, "m", 2, deep))))}, "r: descriptors[0].metadata: it is not a Struct, or nests deeper than 64 levels"},
		{"too deep", [][]byte{message(1, "r", 2, "d", 3, nested)}, "r: " + strings.Repeat("descriptors[0].", maxDepth) + "descriptors[0]: descriptors nest deeper than 64 levels"},
		{"too wide", [][]byte{append(message(1, "r", 2, "d"), bytes.Repeat(message(3, message(1, "k")), maxDescriptors+1)...)}, "r: descriptors[100000]: there are more than 100000 descriptors"},
		{"too many", make([][]byte, maxResources+1), "xDS: there are 10001 resources of 0 bytes, and at most 10000 of 67108864 bytes"},
		{"no message", [][]byte{{0xff}}, "resource 1: not readable as a RateLimitConfig: the message is malformed"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, problems := DecodeXDS(row.resources, Options{})
			if got := show(problems); c != nil || got != row.want {
				t.Errorf("the problems are\n%.400s\nwant\n%s", got, row.want)
			}
		})
	}
}
