package rlsconfig

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// mistakes are broken files with all problems that Parse lists, one a line.
var mistakes = []struct{ name, file, want string }{
	{"unknown key", "domain: d\ndescriptors:\n- key: a\n  ratelimit: {}", "f:4: descriptors[0].ratelimit: unknown key; did you mean rate_limit?"},
	{"unknown key without a hint", "domain: d\nx: 1", "f:2: x: unknown key; the keys are domain, descriptors"},
	{"misspelt keys that are missing", "domian: d\ndescriptors:\n- kye: a\n  rate_limit: {units: day, requests_per_unit: 1}\n", "f:1: domian: unknown key; did you mean domain?\n" +
		"f:3: descriptors[0].kye: unknown key; did you mean key?\nf:4: descriptors[0].rate_limit.units: unknown key; did you mean unit?"},
	{"key that is a number", "domain: d\n5: x", `f:2: 5: a key is text, and YAML 1.1 reads "5" as a number, a switch or null`},
	{"key that is a switch of YAML 1.1", "domain: d\non: x", `f:2: on: a key is text, and YAML 1.1 reads "on" as a number, a switch or null`},
	{"key that is a list", "domain: d\n[a]: x", "f:2: a key belongs here, not a list or a mapping"},
	{"list of scalars", list("{unit: day, requests_per_unit: 1, replaces: [x]}"), "f:4: descriptors[0].rate_limit.replaces[0]: keys with values belong here: - KEY: VALUE"},
	{"descriptors of scalars", "domain: d\ndescriptors: [x, ~]", "f:2: descriptors[0]: keys with values belong here: - KEY: VALUE\n" +
		"f:2: descriptors[1]: keys with values belong here: - KEY: VALUE"},
	{"descriptors that are a mapping", "domain: d\ndescriptors: {key: a}", "f:2: descriptors: a list of mappings belongs here: - KEY: VALUE"},
	{"file that is a list", "- domain: d", "f:1: keys with values belong here: KEY: VALUE"},
	{"limit that is a scalar", list("3/hour"), "f:4: descriptors[0].rate_limit: keys with values belong here: {unit: hour, requests_per_unit: 3}"},
	{"float as text", "domain: d\ndescriptors:\n- {key: a, value: 1.0}", `f:3: descriptors[0].value: "1.0" is read as a number with a fraction, or beyond 64 bits: write it in quotes`},
	{"octal that is none", "domain: d\ndescriptors:\n- {key: a, value: 0812}", `f:3: descriptors[0].value: "0812" is read as a number with a fraction, or beyond 64 bits: write it in quotes`},
	{"integer over 64 bits", "domain: d\ndescriptors:\n- {key: 9223372036854775808}", `f:3: descriptors[0].key: "9223372036854775808" is read as a number with a fraction, or beyond 64 bits: write it in quotes`},
	{"quoted number", list("{unit: day, requests_per_unit: '5'}"), `f:4: descriptors[0].rate_limit.requests_per_unit: "5" is in quotes, and so a string: remove the quotes`},
	{"quoted boolean", "domain: d\ndescriptors:\n- {key: a, shadow_mode: 'yes'}", `f:3: descriptors[0].shadow_mode: "yes" is in quotes, and so a string: remove the quotes`},
	{"number as boolean", "domain: d\ndescriptors:\n- {key: a, quota_mode: 1}", `f:3: descriptors[0].quota_mode: "1" is not a switch: write true or false`},
	{"negative number", list("{unit: day, requests_per_unit: -1}"), `f:4: descriptors[0].rate_limit.requests_per_unit: "-1" is not a number of requests: write a whole number from 0 to 4294967295`},
	{"number over 32 bits", list("{unit: day, requests_per_unit: 4294967296}"), `f:4: descriptors[0].rate_limit.requests_per_unit: "4294967296" is not a number of requests: write a whole number from 0 to 4294967295`},
	{"number with a fraction", list("{unit: day, requests_per_unit: 1.5}"), `f:4: descriptors[0].rate_limit.requests_per_unit: "1.5" is not a number of requests: write a whole number from 0 to 4294967295`},
	{"mapping as text", "domain: {a: b}", "f:1: domain: one value belongs here, not a list or a mapping"},
	{"tag", "domain: !secret d", "f:1: domain: tags are not supported: remove !secret"},
	{"no domain", "descriptors: []", "f:1: domain: a configuration needs the name of its domain: write domain: NAME"},
	{"empty domain", "descriptors:\n\ndomain: ''", "f:3: domain: a configuration needs the name of its domain: write domain: NAME"},
	{"object of Kubernetes", "kind: ConfigMap\ndomain: d", "f:1: kind: unknown key; it is of an object of Kubernetes: write what is below data of a ConfigMap"},
	{"limits file", "domain: d\nplans: {}", "f:2: plans: unknown key; it is of a limits file of Limitgate, which belongs in no folder of Envoy's limits: name that file itself, as in serve --limits FILE"},
	{"limits file alone", "version: 1\nplans: {}\ntenants: {}", "f:1: this is a limits file, which belongs in no folder of Envoy's limits: limitgate limits lint \"f\""},
	{"configuration of Kong", "_format_version: '3.0'\nplugins: []", "f:1: this is a configuration of Kong, which belongs in no folder of Envoy's limits: limitgate limits import kong \"f\""},
	{"configuration of nginx", "events {}\nhttp { server {} }", "f:1: this is a configuration of nginx, which belongs in no folder of Envoy's limits: limitgate limits import nginx \"f\""},
	{"no key", "domain: d\ndescriptors:\n- value: a", "f:3: descriptors[0].key: a descriptor needs a key: write key: NAME"},
	{"empty key", "domain: d\ndescriptors:\n- key: a\n  descriptors:\n  - key: ~", "f:5: descriptors[0].descriptors[0].key: a descriptor needs a key: write key: NAME"},
	{
		"key and value twice", "domain: d\ndescriptors:\n- {key: a, value: b}\n- {key: a}\n- {key: a, value: b}\n- {key: a}",
		"f:5: descriptors[2]: key \"a\" with value \"b\" is there already, see line 3: remove one of them\n" +
			"f:6: descriptors[3]: key \"a\" without a value is there already, see line 4: remove one of them",
	},
	{"unknown unit", list("{unit: minuts, requests_per_unit: 1}"), `f:4: descriptors[0].rate_limit.unit: "minuts" is not a unit; did you mean minute?`},
	{"unit unknown", list("{unit: unknown, requests_per_unit: 1}"), `f:4: descriptors[0].rate_limit.unit: "unknown" is not a unit; write second, minute, hour, day, week, month or year`},
	{"missing unit", list("{requests_per_unit: 1}"), "f:4: descriptors[0].rate_limit.unit: the unit is missing: write second, minute, hour, day, week, month or year"},
	{"limit without keys", list("{}"), "f:4: descriptors[0].rate_limit.unit: the unit is missing: write second, minute, hour, day, week, month or year"},
	{"unlimited with a unit", list("{unlimited: true, unit: day}"), "f:4: descriptors[0].rate_limit.unit: an unlimited descriptor has no unit: remove one of unit and unlimited"},
	{"share_threshold without a pattern", "domain: d\ndescriptors:\n- {key: a, value: b, share_threshold: true}", "f:3: descriptors[0].share_threshold: a descriptor without a pattern has nothing to share: give it a value with *"},
	{"share_threshold with a pattern in the key", "domain: d\ndescriptors:\n- {key: a*, share_threshold: true}", "f:3: descriptors[0].key: warning: an asterisk in a key stands for itself: only values have patterns\n" +
		"f:3: descriptors[0].share_threshold: a descriptor without a pattern has nothing to share: give it a value with *"},
	{
		"replaces without a name", list("{unit: day, requests_per_unit: 1, replaces: [{name: ''}, {}]}"),
		"f:4: descriptors[0].rate_limit.replaces[0].name: the name of the limit to replace is missing\nf:4: descriptors[0].rate_limit.replaces[1].name: the name of the limit to replace is missing",
	},
	{"replaces itself", list("{unit: day, requests_per_unit: 1, name: x, replaces: [{name: x}]}"), `f:4: descriptors[0].rate_limit.replaces[0].name: a limit cannot replace itself: remove "x"`},
	{"replace each other", replacing("a b", "b a"), `f:4: descriptors[1].rate_limit.replaces[0]: the limits "a", "b" replace each other: none of them would hold a request that meets all of them`},
	{"replace each other in a circle", replacing("a b", "b c", "c a", "d a", "e d"), `f:5: descriptors[2].rate_limit.replaces[0]: the limits "a", "b", "c" replace each other: none of them would hold a request that meets all of them`},
	{"metadata that is no mapping", "domain: d\ndescriptors:\n- {key: a, metadata: [x]}", "f:3: descriptors[0].metadata: keys with values belong here: KEY: VALUE"},
	{"prose", "Our limits live here.\nAsk ops.\n", "f:1: it is text, and has no limits: every file of the folder is read, unless its name begins with a dot: move it elsewhere"},
	{"empty file", "# nothing\n", "f:1: the file is empty: write domain and descriptors, or remove it"},
	{"empty document", "---\n", "f:1: domain: a configuration needs the name of its domain: write domain: NAME"},
	{"no YAML", "domain: d\ndescriptors: [", "f:2: not readable as YAML: the [ is not closed: write ] behind the last value"},
	{"no text", "domain: d\nx: \xff", "f:2: not readable as YAML: a byte or character that YAML does not allow; the file must be text in UTF-8"},
	{"unknown alias", "domain: *d", "f:1: not readable as YAML: text that begins with * is a reference to an anchor, and there is none of that name: put the text into quotes"},
	{"merge of a scalar", "domain: d\ndescriptors:\n- {<<: a, key: a}\n- {<<: [{key: b}, c]}", "f:3: descriptors[0]: << merges a mapping, or a list of mappings\nf:4: descriptors[1]: << merges a mapping, or a list of mappings"},
	{"long domain", "domain: " + strings.Repeat("d", 1025), "f:1: domain: the name of a domain has at most 1024 bytes"},
	{
		"long key and value", "domain: d\ndescriptors:\n- {key: " + strings.Repeat("k", 1025) + ", value: " + strings.Repeat("v", 16<<10+1) + "}",
		"f:3: descriptors[0].key: a key has at most 1024 bytes\nf:3: descriptors[0].value: a value has at most 16384 bytes",
	},
	{"long name", list("{unit: day, requests_per_unit: 1, name: " + strings.Repeat("n", 1025) + "}"), "f:4: descriptors[0].rate_limit.name: a name has at most 1024 bytes"},
	{"text over several lines", "domain: d\ndescriptors:\n- {key: \"a\\nb\"}\n- {key: \"a\\nb\"}", `f:4: descriptors[1]: key "a\nb" without a value is there already, see line 3: remove one of them`},
	{
		"all at once", "domain: d\nshadow: true\ndescriptors:\n- key: a\n  quota_mode: maybe\n  rate_limit: {unit: fortnight, requests_per_unit: many, replaces: [{name: a}, {nome: b}]}\n- rate_limit: {unit: [], unlimited: 2}\n",
		"f:2: shadow: unknown key; the keys are domain, descriptors\n" +
			"f:5: descriptors[0].quota_mode: \"maybe\" is not a switch: write true or false\n" +
			"f:6: descriptors[0].rate_limit.requests_per_unit: \"many\" is not a number of requests: write a whole number from 0 to 4294967295\n" +
			"f:6: descriptors[0].rate_limit.replaces[1].nome: unknown key; did you mean name?\n" +
			"f:6: descriptors[0].rate_limit.unit: \"fortnight\" is not a unit; write second, minute, hour, day, week, month or year\n" +
			"f:7: descriptors[1].rate_limit.unit: one value belongs here, not a list or a mapping\n" +
			"f:7: descriptors[1].rate_limit.unlimited: \"2\" is not a switch: write true or false\n" +
			"f:7: descriptors[1].key: a descriptor needs a key: write key: NAME",
	},
}

// list returns a file with a descriptor that has the limit on its fourth line.
func list(limit string) string {
	return "domain: d\ndescriptors:\n- key: a\n  rate_limit: " + limit
}

// replacing returns a file with a limit on each line from the third one, of pairs of its name and the
// one that it replaces.
func replacing(pairs ...string) string {
	file := "domain: d\ndescriptors:\n"
	for i, pair := range pairs {
		name, replaced, _ := strings.Cut(pair, " ")
		file += fmt.Sprintf("- {key: k%d, rate_limit: {unit: day, requests_per_unit: 1, name: %s, replaces: [{name: %s}]}}\n", i, name, replaced)
	}
	return file
}

// show returns problems as text.
func show(problems Problems) string {
	var lines []string
	for _, p := range problems {
		if p.Warning {
			p.Text = "warning: " + p.Text
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

func TestMistakes(t *testing.T) {
	for _, row := range mistakes {
		t.Run(row.name, func(t *testing.T) {
			c, problems := Parse([]File{{"f", []byte(row.file)}}, Options{})
			if got := show(problems); got != row.want {
				t.Errorf("the problems of\n%.300s\nare\n%s\nwant\n%s", row.file, got, row.want)
			}
			if c != nil || problems.Err() == nil {
				t.Errorf("it is accepted, with the error %v", problems.Err())
			}
		})
	}
}

// TestWarnings has files that are accepted with a warning.
func TestWarnings(t *testing.T) {
	for _, row := range []struct{ name, file, want string }{
		{"none", list("{unit: day, requests_per_unit: 0}"), ""},
		{"no requests_per_unit", list("{unit: day}"), "f:4: descriptors[0].rate_limit.requests_per_unit: warning: it is missing, and so 0: every request is over the limit"},
		{"empty limit", list("~"), "f:4: descriptors[0].rate_limit: warning: it is empty, and so the descriptor has no limit: requests that meet it pass"},
		{"second document", "domain: d\n---\ndomain: e\n", "f:2: warning: a second YAML document begins: only the first of a file is read"},
		{"second document that is broken", "domain: d\n---\n: [", "f:1: warning: a second YAML document begins: only the first of a file is read"},
		{"key twice", "domain: c\n\ndomain: d\n", "f:3: domain: warning: it is already there, on line 1: remove one of them"},
		{"merge behind a key", "domain: d\ndescriptors:\n- &a {key: a}\n- {key: b, <<: *a, value: c}\n", "f:4: descriptors[1].key: warning: the mapping that << merges on line 4 replaces it: move << before it"},
		{
			"keys in other places", "domain: d\nunit: day\ndescriptors:\n- {key: a, domain: d, rate_limit: {unit: day, requests_per_unit: 1, shadow_mode: true}}",
			"f:2: unit: warning: it has no effect here: it belongs below rate_limit\n" +
				"f:4: descriptors[0].domain: warning: it has no effect here: it belongs to the top of the file\n" +
				"f:4: descriptors[0].rate_limit.shadow_mode: warning: it has no effect here: it belongs to a descriptor",
		},
		{"asterisk in a key", "domain: d\ndescriptors: [{key: a*}]", "f:2: descriptors[0].key: warning: an asterisk in a key stands for itself: only values have patterns"},
		{
			"switches without a limit", "domain: d\ndescriptors:\n- {key: a, shadow_mode: true, quota_mode: true, detailed_metric: true, descriptors: [{key: b}]}\n" +
				"- {key: c, shadow_mode: true, rate_limit: {unlimited: true, requests_per_unit: 5}}",
			"f:3: descriptors[0].shadow_mode: warning: it has no effect: the descriptor has no rate_limit of its own, and those below it do not inherit it\n" +
				"f:3: descriptors[0].quota_mode: warning: it has no effect: the descriptor has no rate_limit of its own, and those below it do not inherit it\n" +
				"f:3: descriptors[0].detailed_metric: warning: it has no effect: the descriptor has no rate_limit of its own, and those below it do not inherit it\n" +
				"f:4: descriptors[1].shadow_mode: warning: it has no effect: the descriptor is unlimited\n" +
				"f:4: descriptors[1].rate_limit.requests_per_unit: warning: it has no effect: the descriptor is unlimited",
		},
		{"two switches of metrics", list("{unit: day, requests_per_unit: 1}\n  detailed_metric: true\n  value_to_metric: true"), "f:3: descriptors[0].value_to_metric: warning: it has no effect: detailed_metric has the values of all levels already"},
		{
			"replaces no limit", replacing("login other") + "- {key: o, rate_limit: {unit: day, requests_per_unit: 1, name: others}}",
			`f:3: descriptors[0].rate_limit.replaces[0].name: warning: no limit of domain "d" has the name "other", so nothing is replaced: did you mean others?`,
		},
		{"covered by a prefix", patterns("x*", "y*", "xy*", "y*x"), "f:5: descriptors[2]: warning: it never applies: the pattern \"x*\" of line 3 comes first and matches all of its values\n" +
			"f:6: descriptors[3]: warning: it never applies: the pattern \"y*\" of line 4 comes first and matches all of its values"},
		{"not covered", patterns("x*z", "x*", "*x", "a*b*c", "a*c*b", "x"), ""},
		{"a network as an address", "domain: d\ndescriptors: [{key: remote_address, value: 10.0.0.0/8, rate_limit: {unlimited: true}}]\n", `f:2: descriptors[0].value: warning: "10.0.0.0/8" is a network, and a remote_address is one address, so that no request has it: networks are values of masked_remote_address`},
		{"covered by all", patterns("*", "x", ""), "f:5: descriptors[2]: warning: it never applies: the pattern of line 3 matches all values"},
		{"all behind the default", patterns("", "**"), "f:3: descriptors[0]: warning: it never applies: the pattern of line 4 matches all values"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c, problems := Parse([]File{{"f", []byte(row.file)}}, Options{})
			if got := show(problems); got != row.want || c.Domain("d") == nil || problems.Err() != nil {
				t.Errorf("the problems of\n%s\nare\n%s\nwant\n%s", row.file, got, row.want)
			}
		})
	}
}

// patterns returns a file with a descriptor for each value, from line 3 on.
func patterns(values ...string) string {
	file := "domain: d\ndescriptors:\n"
	for _, value := range values {
		file += fmt.Sprintf("- {key: k, value: %q}\n", value)
	}
	return file
}

func TestSeveralFiles(t *testing.T) {
	a := File{"a", []byte("domain: d\ndescriptors:\n- {key: a}\n- {key: k, value: x*}")}
	b := File{"b", []byte("descriptors:\n- {key: b}\n- {key: k, value: xy*}\ndomain: d")}
	c, problems := Parse([]File{a, b}, Options{})
	if want := `b:4: domain: domain "d" is there already, see line 1 of a: join them, or set MERGE_DOMAIN_CONFIG=true, as --rls-merge-domains does`; c != nil || show(problems) != want {
		t.Errorf("the problems are\n%s\nwant\n%s", show(problems), want)
	}
	c, problems = Parse([]File{a, b}, Options{MergeDomains: true})
	if want := `b:3: descriptors[1]: warning: it never applies: the pattern "x*" of line 4 of a comes first and matches all of its values`; show(problems) != want {
		t.Errorf("the problems are\n%s\nwant\n%s", show(problems), want)
	}
	for _, key := range []string{"a", "b"} {
		if rule := c.Domain("d").Match(entriesOf(key, "")); rule == nil || rule.File != key || rule.Path != key {
			t.Errorf("%s meets %+v", key, rule)
		}
	}
	_, problems = Parse([]File{a, b, {"e", []byte("domain: d\ndescriptors: [{key: a, descriptors: [{key: c}]}]")}}, Options{MergeDomains: true})
	if want := `e:2: descriptors[0]: key "a" without a value is there already, see line 3 of a: remove one of them`; problems.Err() == nil || problems.Err().Error() != want {
		t.Errorf("the error is\n%v\nwant\n%s", problems.Err(), want)
	}
}

// TestBounds has files that are too large, too deep or too wide, with their one mistake.
func TestBounds(t *testing.T) {
	nested := func(levels int) string {
		return "{domain: d, descriptors: " + strings.Repeat("[{key: a, descriptors: ", levels) + "[]" + strings.Repeat("}]", levels) + "}"
	}
	bomb := "domain: d\ndescriptors:\n- key: a\n  metadata:\n    x0: &x0 [a]\n"
	for i := range 40 {
		bomb += fmt.Sprintf("    x%d: &x%d {m: [*x%d, *x%d]}\n", i+1, i+1, i, i)
	}
	leaves := ""
	for i := range 1000 {
		leaves += fmt.Sprintf("{key: k%d}, ", i)
	}
	for _, row := range []struct{ name, file, want string }{
		{"deep", nested(maxDepth), ""},
		{"too deep", nested(maxDepth + 1), "descriptors nest deeper than 64 levels"},
		{"too wide", "domain: d\ndescriptors:\n" + strings.Repeat("- key: a\n", maxDescriptors+1), "there are more than 100000 descriptors"},
		{"too large", "domain: d #" + strings.Repeat("x", maxFileBytes), "the file has 10485771 bytes, and the largest may have 10485760"},
		{"long paths", "domain: d\ndescriptors: " + strings.Repeat("[{key: a, value: "+strings.Repeat("v", maxValueBytes)+", descriptors: ", 5) + "[" +
			leaves + "]" + strings.Repeat("}]", 5), "the keys and values of all descriptors, with those above them, have more than 67108864 bytes"},
		{"alias of a part of itself", "domain: d\ndescriptors: &a\n- {key: x, descriptors: *a}\n", "descriptors nest deeper than 64 levels"},
		{"metadata of a part of itself", "domain: d\ndescriptors:\n- {key: x, metadata: &m {" + strings.Repeat("m", 100) + ": *m}}", "the file nests deeper than 200: perhaps an alias stands for a part of itself"},
		{"merge of a part of itself", "domain: d\ndescriptors:\n- &a {key: x, <<: *a}", "the file nests deeper than 200: perhaps an alias stands for a part of itself"},
		{"aliases of aliases", bomb, "the file has more than 4194304 values, with those that aliases repeat"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, problems := Parse([]File{{"f", []byte(row.file)}}, Options{})
			last := ""
			if len(problems) > 0 {
				last = problems[len(problems)-1].Text
			}
			if last != row.want {
				t.Errorf("the last of %d problems is %s, want %s", len(problems), last, row.want)
			}
			if len(show(problems)) > 2*maxField {
				t.Errorf("the problems are\n%.5000s", show(problems))
			}
		})
	}
}

func TestManyMistakesAreCut(t *testing.T) {
	_, problems := Parse([]File{{"f", []byte("domain: d\ndescriptors:\n" + strings.Repeat("- {}\n", 5000))}}, Options{})
	if want := "more mistakes follow: mend these first"; len(problems) != maxProblems+1 || problems[maxProblems].Text != want {
		t.Errorf("there are %d problems, the last is %+v", len(problems), problems[len(problems)-1])
	}
}

// TestYAML11 has scalars that YAML 1.1 and 1.2, or their parsers, read differently.
func TestYAML11(t *testing.T) {
	for text, want := range map[string]string{
		"404": "404", "true": "true", "yes": "yes", "2026-01-02": "2026-01-02", "0x10": "0x10", "1_000": "1_000", "'1.0'": "1.0", "1:30": "1:30",
		"1e999": "1e999", "!!str 1.5": "1.5", "null": "", "~": "", "''": "", "|-\n   a\n   b": "a\nb", ".": ".", "._5": "._5", ".Nan": ".Nan", "&x 5": "5",
	} {
		c := parsed(t, Options{}, File{"f", []byte("domain: d\ndescriptors:\n- key: a\n  value: " + text)})
		path := "a"
		if want != "" {
			path += "_" + want
		}
		if rule := c.Domain("d").Match(entriesOf("a", want)); rule == nil || rule.Path != path {
			t.Errorf("the value %s meets %+v, want %q", text, rule, path)
		}
	}
	for text, want := range map[string]uint32{"010": 8, "0x10": 16, "0b11": 3, "0o17": 15, "1_000": 1000, "+5": 5, "4294967295": 4294967295, "~": 0} {
		c := parsed(t, Options{}, File{"f", []byte(list("{unit: Hour, requests_per_unit: " + text + "}"))})
		if limit := c.Domain("d").Match(entriesOf("a", "")).Limit; limit.RequestsPerUnit != want || limit.Unit != UnitHour {
			t.Errorf("requests_per_unit: %s is %+v, want %d", text, limit, want)
		}
	}
	for text, want := range map[string]bool{"yes": true, "On": true, "TRUE": true, "y": true, "no": false, "OFF": false, "n": false, "~": false} {
		c := parsed(t, Options{}, File{"f", []byte("domain: d\ndescriptors:\n- key: a\n  shadow_mode: " + text)})
		if got := c.Domain("d").Match(entriesOf("a", "")).Shadow; got != want {
			t.Errorf("shadow_mode: %s is %t", text, got)
		}
	}
}

// TestMerges has mappings with anchors, aliases and merges, and the lines of their limits.
func TestMerges(t *testing.T) {
	for _, row := range []struct{ name, file, want string }{
		{"a key behind a merge wins", "- key: a\n  rate_limit: &r {unit: hour, requests_per_unit: 7}\n- {key: b, rate_limit: {<<: *r, requests_per_unit: 8}}", "a HOUR 7, b HOUR 8"},
		{"a key before a merge loses", "- &a {key: a, rate_limit: {unit: hour, requests_per_unit: 7}}\n- {key: b, <<: *a, value: x}", "a HOUR 7, a_x HOUR 7"},
		{"a merged limit is completed", "- &a {key: a, rate_limit: {unit: hour, requests_per_unit: 7}}\n- {<<: *a, key: b, rate_limit: {requests_per_unit: 8}}", "a HOUR 7, b HOUR 8"},
		{"the first of a list wins", "- &a {key: a, rate_limit: {unit: hour, requests_per_unit: 7}}\n- &b {key: b, rate_limit: {unit: day, requests_per_unit: 9}}\n- {<<: [*b, *a], value: x}", "a HOUR 7, b DAY 9, b_x DAY 9"},
		{"a list of an alias", "- key: a\n  descriptors: &l [{key: c, rate_limit: {unit: day, requests_per_unit: 1}}]\n- {key: b, descriptors: *l}", "a.c DAY 1, b.c DAY 1"},
		{"the last list wins", "- {key: a}\ndescriptors:\n- {key: b, rate_limit: {unit: day, requests_per_unit: 1}}", "b DAY 1"},
		{"a quoted << is a key", "- {key: a, metadata: {'<<': {x: 1}}, rate_limit: {unit: day, requests_per_unit: 1}}", "a DAY 1"},
	} {
		c := parsed(t, Options{}, File{"f", []byte("domain: d\ndescriptors:\n" + row.file)})
		var got []string
		for _, r := range c.limited {
			got = append(got, fmt.Sprint(r.Path, " ", r.Limit.Unit, " ", r.Limit.RequestsPerUnit))
		}
		if strings.Join(got, ", ") != row.want {
			t.Errorf("%s: the limits are %q, want %s", row.name, got, row.want)
		}
	}
}

func TestMetadata(t *testing.T) {
	file := list("{unit: day, requests_per_unit: 1}") + "\n  metadata: {x: {y: [1, a, yes, ~, 1.5, {z: 0x10}]}, 5: six, no: '7', date: 2026-01-02, inf: .inf}\n"
	got := fmt.Sprint(parsed(t, Options{}, File{"f", []byte(file)}).Domain("d").Match(entriesOf("a", "")).Metadata)
	if want := "map[5:six date:2026-01-02 inf:Infinity no:7 x:map[y:[1 a true <nil> 1.5 map[z:16]]]]"; got != want {
		t.Errorf("the metadata is %s, want %s", got, want)
	}
}

func TestUnits(t *testing.T) {
	want := []int64{1, 60, 3600, 86400, 604800, 2592000, 31536000}
	for i, name := range unitNames {
		u := parseUnit(strings.ToUpper(name[:1]) + name[1:])
		if u.Seconds() != want[i] || !strings.EqualFold(u.String(), name) {
			t.Errorf("%s is %s of %d seconds, want %d", name, u, u.Seconds(), want[i])
		}
	}
	if !slices.Contains(unitNames, "week") || parseUnit("weeks") != UnitUnknown {
		t.Error("weeks is a unit")
	}
}
