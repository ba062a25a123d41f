package config

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestOtherFile: a settings file in place of limits is named as one, and a foreign file with keys of the same
// names is not.
func TestOtherFile(t *testing.T) {
	const isSettings = "this is a settings file: name it by --config"
	for content, want := range map[string]string{
		"limits: limits.yaml":                         isSettings,
		"redis: [a:1, b:2]":                           isSettings,
		"redis: {io_timeout: 5ms}":                    isSettings,
		"http: {listen: '127.0.0.1:7000'}":            isSettings,
		"foreign: 1\nlog_level: debug":                isSettings,
		"limits: [{name: x, requests: 10}]":           "limits: unknown key; limits stand in plans",
		"http: {middlewares: {a: {rateLimit: {}}}}":   "http: unknown key; the keys are complete_for,",
		"redis: {host: a}":                            "redis: unknown key; the keys are complete_for,",
		"rules: [{rule_id: x, rate: 1/s}]":            "x.yaml:1: this is a list of rules: limitgate limits import rules x.yaml",
		"- {match: POST /x, rate: 10}":                "x.yaml:1: this is a list of rules: limitgate limits import rules x.yaml",
		"- {id: x, by: [tenant], rate: 1/s}":          "this is no limits file: begin one with version: 1",
		"# x\n\nuser a on #00 ~a +@check\nuser b off": "x.yaml:1: this is a file of users: limitgate serve --users x.yaml",
		"user a: b":          "the keys are complete_for,",
		"rules: [{name: x}]": "rules: unknown key; the keys are complete_for,",
		"version: 1\nlimits: [{name: x, requests: 10}]": "limits: unknown key; limits stand in plans",
	} {
		_, _, err := ParseLimits("x.yaml", []byte(content), limit.CompileOptions{})
		if err == nil || !strings.Contains(err.Error(), want) || want != isSettings && strings.Contains(err.Error(), isSettings) {
			t.Errorf("%q: %v, without %q", content, err, want)
		}
	}
}

// TestNoLimits: prose and other text get no advice on YAML, and what is most likely YAML does.
func TestNoLimits(t *testing.T) {
	for _, row := range []struct {
		file, content string
		want          bool
	}{
		{"x.yaml", "# Title\n\nSome prose is here,\nin two lines: it goes on: and on.\n", true},
		{"x.yaml", "<svg>\n<text>a</text>\n</svg>\n", true},
		{"x.yaml", "GOAL := help\n\tx: y\n", true},
		{"x.md", "# Title\n\nText: a: b\n\nversion: 1\n", true},
		{"x.yaml", "planz:\n  free:\n    - {idd: x\n", false},
		{"x.yaml", "version 2.1 release notes\nadded: faster: lookups\n", true},
		{"x.yaml", "some text\nversion: 1\n", false},
		{"x.yaml", "{\"a\": 1,, }", false},
		{"x.yaml", "a b\n\u00a0\u00a0plans:\n\u00a0\u00a0\u00a0free: x: y\n", false},
		{"x.yaml", "@@ -1 +1 @@\n+version: 1\n", false},
		{"x.yaml", "a\x00b", false},
	} {
		_, _, err := ParseLimits(row.file, []byte(row.content), limit.CompileOptions{})
		if got := err != nil && strings.Contains(err.Error(), noLimits); got != row.want {
			t.Errorf("%q: %v", row.content, err)
		}
	}
}

// TestLogInPlaceOfLimits: a log is named as one, whatever its later lines are, and a limits file is none.
func TestLogInPlaceOfLimits(t *testing.T) {
	common := `203.0.113.35 - - [02/Mar/2026:09:00:00 +0000] "GET /a HTTP/1.1" 200 7 "-" "x"`
	for content, want := range map[string]bool{
		common + "\n" + common + "\n{\"json\": tru\n": true,
		common + "\n    Caused by: x: y\n":            true,
		`{"time_iso8601":"2026-03-02T09:00:01+00:00","remote_addr":"203.0.113.7","request_uri":"/x"}` + "\n": true,
		`2026/03/02 09:00:00 [error] 12#12: *1 limiting requests, excess: 5.6 by zone "x"` + "\n":            true,
		"#Version: 1.0\n#Fields: date time\n": true,
		`{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], when: {op: "GET /x"}, rate: 1/s}]}}`: false,
		`{"version": 1, "shared": [{"id": "a", "by": ["ip"], "when": {"op": "GET /x"}, "rate": "1/s"}]}`:      false,
		`shared: [{id: a, by: [ip], when: {op: "GET /x"}, rate: 1/s}]` + "\nversion: 1\n":                     false,
	} {
		_, _, err := ParseLimits("x.yaml", []byte(content), limit.CompileOptions{})
		if got := err != nil && err.Error() == "x.yaml:1: this is a log, and no limits file: limitgate replay --limits limits.yaml access.log"; got != want || !want && err != nil {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestEmptyExtensions: the advice about an empty file is for its own kind.
func TestEmptyExtensions(t *testing.T) {
	const want = "x.yaml:1: the file is empty: write version: 1 and domains, as in docs/envoy.md"
	for _, content := range []string{"", "# none\n"} {
		if _, err := ParseRLSExtensions("x.yaml", []byte(content)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", content, err, want)
		}
	}
}

// TestNearName: the ending of a file does not count for whether a name is nearly another one.
func TestNearName(t *testing.T) {
	names := []string{"node", ".env", ".gitignore", "big.yaml", "limits.yaml", "n2.yaml", "nginx.conf", "old.json", "old.yaml", "table.snapshot"}
	for name, want := range map[string]string{
		"limit.yaml": "limits.yaml", "limits.yml": "limits.yaml", "limits": "limits.yaml", "nope.yaml": "", "ngnix.conf": "nginx.conf",
		"olld.json": "old.json", "old.yml": "old.yaml", "x.yaml": "", "table.yml": "", "table.json": "", "table": "table.snapshot", ".gitignor": ".gitignore", "e": "", "nopw": "", "nod": "", "nodes": "node",
	} {
		if got := nearName(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
