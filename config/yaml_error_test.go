package config

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// goodFile is a limits file in which TestYAMLMistakes makes mistakes.
const goodFile = `version: 1
default_plan: free
plans:
  free:
    - id: tenant
      by: [tenant]
      rate: 100/s
    - id: pay
      by: [tenant, op]
      when: {op: "POST /pay*"}
      rate: 600/m
tenants:
  acme:
    plan: free
`

// yamlMistakeRows are mistakes with the beginnings of their messages. A row without old is a whole
// file.
var yamlMistakeRows = []struct{ name, old, new, want string }{
	{"less indented", "      rate: 100", "     rate: 100", "7: the line begins in column 6: the entries of the list that begins on line 5 have their - in column 5, and their other lines begin in column 7"},
	{"not indented", "      by: [tenant]", "    by: [tenant]", "6: the line begins in column 5: the entries of the list that begins on line 5"},
	{"more indented", "      rate: 100", "        rate: 100", "7: the line begins in column 9, and the names of the mapping that begins on line 5 in column 7: begin them in the same column"},
	{"more indented than a value", "      by: [tenant]\n", "       by: [tenant]\n", "6: the line is indented more than line 5, which has a value already"},
	{"list below a value", "  free:\n", "  free: x\n", "5: the line is indented more than line 4, which has a value already"},
	{"top level indented", "tenants:", " tenants:", "12: the line begins in column 2, and the names of the mapping that begins on line 1 in column 1"},
	{"first line indented", "version", " version", "1: the line is indented, and later ones are not"},
	{"- to the left", "    - id: pay", "   - id: pay", "8: the - is in column 4, where no list is: begin all entries of one list in the same column"},
	{"- to the right", "    - id: pay", "      - id: pay", "8: the - is in column 7, where no list is"},
	{"- before a name of the file", "tenants:", "- tenants:", "12: the - is in column 1, where no list is"},
	{"no space behind -", "- id: pay", "-id: pay", `8: a space is missing behind the -: write "- id: pay"`},
	{"two - in one line", "- id: pay", "- - id: pay", "9: the line begins in column 7: the entries"},
	{"list behind its name", "  free:\n    - id", "  free: - id", "4: a list begins on a line of its own"},
	{"no space behind a colon", "rate: 100", "rate:100", `7: a space is missing behind the colon: write "rate: 100/s"`},
	{"no space at the top", "version: 1", "version:1", `1: a space is missing behind the colon: write "version: 1"`},
	{"no space before a list", "by: [tenant]", "by:[tenant]", `6: a space is missing behind the colon: write "by: [tenant]"`},
	{"no space in braces", "op: \"POST", "op:\"POST", "10: plans.free[1].when.op:\"POST /pay*\": a space is missing behind the colon: write `op:"},
	{"no space between fields", "    - id: pay", "    - {id:x}\n    - id: pay", `8: plans.free[1].id:x: a space is missing behind the colon: write "id: x"`},
	{"no colon", "rate: 100", "rate 100", `7: a colon is missing between a name and its value: write "rate: 100/s"`},
	{"equals sign", "default_plan: free", "default_plan = free", `2: a colon is missing between a name and its value: write "default_plan: free"`},
	{"name alone", "default_plan: free", "default_plan", "2: a colon is missing behind the name: write \"default_plan:\""},
	{"wide colon", "default_plan: ", "default_plan： ", "2: the colon is a wide one, U+FF1A"},
	{"second colon", "100/s", "100/s: x", "7: a second colon with a space behind it: put quotes around the value"},
	{"mapping behind a name", "      rate: 100", "      when: op: POST /login\n      rate: 100", "7: a mapping behind a name stands in braces: write `when: {op: \"POST /login\"}`"},
	{"fields on a line", "100/s", "100/s, burst: 20", `7: several names on one line: put each on a line of its own, or all of them into braces: "{rate: 100/s, burst: 20}"`},
	{"entry on a line", "    - id: pay", "    - id: pay, by: [tenant], rate: 5/s\n    - id: pay", `8: several names on one line: put each on a line of its own, or all of them into braces: "{id: pay, by: [tenant], rate: 5/s}"`},
	{"tab", "      rate: 100", "\trate: 100", "7: the line is indented by a tab"},
	{"tab behind spaces", "      rate: 100", "    \t rate: 100", "7: the line is indented by a tab"},
	{"tab after a value", "      rate: 100", "      \trate: 100", "7: the line is indented by a tab"},
	{"no-break spaces", "      rate: 100", "\u00a0     rate: 100", "7: the line is indented by characters that only look like spaces"},
	{"merge conflict", "tenants:", "<<<<<<< HEAD\ntenants:", "12: a mark of a merge conflict"},
	{"end of a merge conflict", "tenants:", ">>>>>>> main\ntenants:", "12: a mark of a merge conflict"},
	{"open bracket", "[tenant]", "[tenant", "6: the [ is not closed: write ]"},
	{"open brace", "\"POST /pay*\"}", "\"POST /pay*\"", "11: a comma is missing in front of \"rate: 600/m\", or the } that closes the { of line 10"},
	{"open brace at the end", "", "{version: 1", "1: the { is not closed: write }"},
	{"open bracket at the end", "", "version: 1\nplans: [", "2: the [ is not closed: write ]"},
	{"two brackets", "[tenant]", "[tenant]]", `6: "]" stands behind a value that is complete`},
	{"wrong bracket", "[tenant]", "[tenant}", "6: } cannot close the [: write ]"},
	{"a template without quotes", "\"POST /pay*\"}", "GET /v1/{id}}", `10: text with braces needs quotes: write "GET /v1/{id}"`},
	{"a longer template without quotes", "\"POST /pay*\"}", "GET /v1/{id}/posts/{post}, ip: 10.0.0.1}", `10: text with braces needs quotes: write "GET /v1/{id}/posts/{post}"`},
	{"no comma in braces", "\"POST /pay*\"}", "\"POST /pay*\" ip: 10.0.0.1}", "10: a comma is missing in front of \"ip: 10.0.0.1}\""},
	{"no comma in JSON", "", `{"version": 1 "plans": {}}`, "1: a comma is missing in front of `\"plans\": {}}`"},
	{"no comma in JSON, which YAML reads", "", `{"version":1"plans":{"p":[]}}`, "1: a comma is missing in front of `\"plans\":{\"p\":[]}}`"},
	{"no comma between limits in JSON", "", "{\"version\": 1, \"shared\": [\n{\"id\": \"a\"}\n{\"id\": \"b\"}]}", "3: a comma is missing in front of `{\"id\": \"b\"}]}`"},
	{"a bracket of the other kind behind a word", "", "{\"version\": 1, \"shared\": [{\"when\": {\"ip\": 10.0.0.0/8}},\n{\"by\": [\"ip\", \"op\"}]}", "2: } cannot close the [: write ]"},
	{"no colon in JSON", "", "{\"version\": 1,\n\"plans\" {}}", `2: a colon is missing in front of "{}}", between a name and its value`},
	{"no quote in JSON", "", "{\"version\": 1,\n\"default_plan\": \"p,\n\"plans\": {}}", `2: a text is not closed: write " at its end`},
	{"no quote in a line of JSON", "", "{\"version\": 1,\n\"default_plan\": \"p, \"plans\": {}}", "2: the text in front of `plans\": {}}` is not closed: write \" at its end"},
	{"a brace too many in JSON", "", "{\"version\": 1,\n\"plans\": {}\n}}", `3: "}" stands behind the end of the file's value: remove it, or a bracket too many in front of it`},
	{"a bracket of the other kind in JSON", "", "{\"version\": 1,\n\"shared\": [}", "2: the [ is not closed: write ] in front of \"}\""},
	{"no dash in front of a limit", "", "version: 1\nshared:\n  - {id: a, by: [ip]}\n  {id: b, by: [ip]}\n", `4: a - is missing in front of a limit: write "- {id: b, by: [ip]}"`},
	{"no dash in front of the first limit", "", "version: 1\nshared:\n  {id: a, by: [ip]}\n  - {id: b, by: [ip]}\n", `3: a - is missing in front of a limit: write "- {id: a, by: [ip]}"`},
	{"no dash in front of a second id", "", "version: 1\nshared:\n  - id: a\n    by: [ip]\n    id: b\n    by: [op]\n", "5: shared[0].id: a second id in the limit of line 3: write - in front of it to begin another limit"},
	{"no comma between strings", "", "{\"default_plan\": \"p\"\n \"plans\": {}}", "2: a comma is missing in front of `\"plans\": {}}`"},
	{"no value in a list", "[tenant, op]", "[tenant, , op]", `9: a value is missing in front of ", op]"`},
	{"no comma in a list", "[tenant, op]", "[tenant op]", `by: "tenant op" is not a dimension: use letters, digits, dots, dashes and underscores, and commas between several: [tenant, op]`},
	{"list without brackets", "[tenant, op]", "tenant, op", "9: plans.free[1].by: a list belongs here: [tenant, op]"},
	{"braces in a value", `"POST /pay*"`, "GET /{id}", "10: text with braces needs quotes: write \"GET /{id}\""},
	{"open quote", `"POST /pay*"`, `"POST /pay*`, "10: the quote in column 18 is not closed"},
	{"open quote and a new document", "", "version: 1\ndefault_plan: 'x\n---\n", "2: the quote in column 15 is not closed"},
	{"text behind quotes", "default_plan: free", `default_plan: "free" x`, `2: "x" stands behind a value that is complete: remove it, or put quotes around the whole value`},
	{"apostrophe", `"POST /pay*"`, "'it's'", "10: a comma is missing in front of"},
	{"typographic quotes", `"POST /pay*"`, "“POST /pay*”", `10: plans.free[1].when.op: “ is a typographic quote: write " or '`},
	{"backslash", "POST /pay", `POST \\ \pay`, `10: a backslash in double quotes begins an escape`},
	{"hexadecimal escape", "POST /pay", `\xZZ`, `10: a backslash in double quotes begins an escape`},
	{"escape of no character", "POST /pay", `\ud800`, `10: a backslash in double quotes begins an escape`},
	{"@", "default_plan: free", "default_plan: @free", `2: text that begins with @ needs quotes: "@free"`},
	{"`", "default_plan: free", "default_plan: `free`", "2: text that begins with ` needs quotes"},
	{"%", "{op: \"POST /pay*\"}", "{op: %2F}", `10: text that begins with % needs quotes: "%2F"`},
	{"% at the beginning", "version", "%version", "1: a line that begins with % is a directive"},
	{"a directive", "version", "%YAML 1.2\nversion", "1: a line that begins with % is a directive"},
	{"a wrong directive", "version", "%YAML 9.9\n---\nversion", "1: the file says that it is of another version of YAML"},
	{"a directive with a long version", "version", "%YAML 1.12345678901\n---\nversion", "1: a line that begins with % is a directive"},
	{"* alone", `"POST /pay*"`, "*", "10: text that begins with * needs quotes"},
	{"* and a word", `"POST /pay*"`, "*pay", "10: text that begins with * is a reference to an anchor"},
	{"&", "default_plan: free", "default_plan: &", "2: text that begins with & needs quotes"},
	{"!", "100/s", "!100/s", "7: plans.free[0].rate: text that begins with ! needs quotes"},
	{"!!x!", "100/s", "!x!100/s", "7: text that begins with ! needs quotes"},
	{"!<", "100/s", "!<100/s", "7: text that begins with ! needs quotes"},
	{"! and a bracket", "100/s", "!{x", "7: text that begins with ! needs quotes"},
	{"? and a space", "default_plan: free", "default_plan: ? free", "2: text that begins with ? and a space needs quotes"},
	{"|", "100/s", "| 100/s", "7: text that begins with | or > needs quotes"},
	{">", "100/s", "> 100/s", "7: text that begins with | or > needs quotes"},
	{"|0", "100/s", "|0", "7: text that begins with | or > needs quotes"},
	{"# without a space", "default_plan: free", `default_plan: "free"#x`, "2: # begins a comment only behind a space"},
	{"text behind ...", "plans:", "... x\nplans:", "3: ... ends a file of YAML"},
	{"two documents", "plans:", "---\nplans:", "3: a second YAML document begins: one file is one document, so remove the line"},
	{"no names", "", "version 1", "1: this is no limits file: begin one with version: 1, default_plan: NAME and plans"},
	{"source code", "", "const l = rateLimit({ windowMs: 900,\n  max: 5 })", "1: it is the source code of a program: limits in code are moved by hand, see docs/moving"},
	{"a line of source code", "", "import x from 'y'", "1: it is the source code of a program"},
	{"names behind text", "", "version 1\nplans: {}", `1: a colon is missing between a name and its value: write "version: 1"`},
	{"names behind a list", "", "[version]\nplans: {}", "2: the lines above are a value that is complete"},
	{"value missing", "default_plan: free", "default_plan:", "2: default_plan: the value is missing: write one, or remove the line"},
	{"list in place of a value", "100/s", "[100/s]", "7: plans.free[0].rate: one value belongs here, not a list"},
	{"a template of Helm", "100/s", "{{ .Values.rate }}", "7: plans.free[0].rate: {{ }} is the placeholder of a template: fill the template in first"},
	{"a default", "default_plan: free", "default: free", "2: default: unknown key; did you mean default_plan?"},
	{"a placeholder", "100/s", "${RATE}", "7: plans.free[0].rate: ${RATE} is a placeholder: put a rate in its place first"},
	{"a placeholder within", "100/s", "${RATE:-10}/s", "7: plans.free[0].rate: ${RATE:-10} is a placeholder: put a rate in its place first"},
	{"a placeholder without braces", "100/s", "$RATE", "7: plans.free[0].rate: $RATE is a placeholder: put a rate in its place first"},
	{"a template in quotes", "100/s", `"{{ .Values.rate }}/s"`, "7: plans.free[0].rate: {{ }} is the placeholder of a template: fill the template in first"},
	{"a placeholder for a burst", "100/s", "100/s\n      burst: ${BURST}", "8: plans.free[0].burst: ${BURST} is a placeholder: put a number in its place first"},
	{"limit of concurrency", "100/s", "100/s\n    - {id: c, by: [tenant], algorithm: concurrency, limit: 5}", "8: plans.free[1].limit: unknown key; write slots: 5"},
	{"a key without a name", "100/s", "100/s\n      \"\": 3", "8: plans.free[0].: unknown key; the keys are "},
	{"too many for slots", "100/s", "100/s\n    - {id: c, by: [tenant], algorithm: concurrency, quota: 99999}", "8: plans.free[1].quota: unknown key; write slots: 20"},
	{"max of concurrency", "100/s", "100/s\n    - {id: c, by: [tenant], algorithm: concurrency, max: many}", "8: plans.free[1].max: unknown key; write slots: 20"},
	{"two rates of an override", "    plan: free\n", "    plan: free\n    overrides: {tenant: {rate: [1/s, 2/m]}}\n", "for a further one, write another limit in the plan, with group: NAME"},
	{"two rates", "100/s", "[10/s, 100/m]", "7: plans.free[0].rate: one rate belongs here: write a limit for each, the further ones with group: NAME"},
	{"mapping in place of a value", "100/s", "{count: 100}", "7: plans.free[0].rate: one value belongs here, not names with values"},
	{"list in place of a condition", `{op: "POST /pay*"}`, `["POST /pay*"]`, `10: plans.free[1].when: names with values belong here: write {op: "POST /v1/payments*"}`},
	{"comment of C", "plans:", "// plans of the API\nplans:", `3: a comment begins with #: write "# plans of the API"`},
	{"comment of C in two lines", "plans:", "/* plans\n of the API */\nplans:", `3: a comment begins with #: write "# plans"`},
	{"comment of C in one line", "plans:", "/* plans */\nplans:", `3: a comment begins with #: write "# plans"`},
	{"comment of ini files", "plans:", "; plans of the API\nplans:", `3: a comment begins with #: write "# plans of the API"`},
	{"comment of SQL", "plans:", "-- plans of the API\nplans:", `3: a comment begins with #: write "# plans of the API"`},
	{"comment of C below a value", "      rate: 100", "      // the rate\n      rate: 100", `7: a comment begins with #: write "# the rate"`},
	{"comment of C with a colon", "plans:", "// plans: two\nplans:", `3: // plans: a comment begins with #: write "# plans"`},
	{"comment of C behind a list", "[tenant]", "[tenant] // each", `6: a comment begins with #: write "# each"`},
	{"comment of C in JSON", "", "{\"version\": 1,\n// format\n\"plans\": {}}", `2: // format "plans": JSON has no comments: leave it out, or write the file as YAML, where a comment begins with #`},
	{"comment of C in JSON that cannot be read", "", "{\"version\": 1,\n// it's: two\n\"plans\": {}}", "JSON has no comments"},
	{"brace in a comment", `{op: "POST /pay*"}`, `{op: "POST /pay*" # two}`, `10: the } is inside of the comment "# two}": write it in front of the #`},
	{"bracket in a comment", "[tenant]", "[tenant # one]", `6: the ] is inside of the comment "# one]": write it in front of the #`},
	{"brace in a comment at the end", "", "version: 1\nplans: {a: [{rate: 1/s # two}]}", `2: the } is inside of the comment "# two}]}": write it in front of the #`},
	{"control character", "100/s", "10\x000/s", "7: a byte or character that YAML does not allow: save the file as text in UTF-8"},
	{"a name between columns", "", "version: 1\nplans:\n  p:\n    - id: a\n      by: [tenant]\n      rate: 5/s\n   other:\n    - id: a\n", "7: the line begins in column 4, and the names of the mapping that begins on line 3 in column 3: begin them in the same column"},
	{"a misspelt section", "", "version: 1\ndefault_plan: p\nplan:\n  p:\n    - {id: a}\n tenants:\n  a: {}\n", "6: the line begins in column 2, and the names of the mapping that begins on line 1 in column 1: begin them in the same column"},
	{"an anchor of its own", "", "version: 1\nx-common: &c {by: [tenant]}\nplans:\n  p:\n    - {id: a}\n tenants:\n  a: {}\n", "6: the line begins in column 2, and the names of the mapping that begins on line 1 in column 1: begin them in the same column"},
	{"no space in braces", "    plan: free\n", "    plan: free\nshared:\n  - {id: s, by:[ip], rate: 5/s}\n", `16: a space is missing behind the colon: write "by: [ ..."`},
	{"no space before braces", "    plan: free\n", "    plan: free\nshared:\n  - {id: s, by: [ip], when:{op: x}, rate: 5/s}\n", `16: a space is missing behind the colon: write "when: { ..."`},
	{"a no-break space behind -", "    - id: tenant", "    -\u00a0id: tenant", "5: a character that only looks like a space, such as a no-break space: write a space in its place"},
	{"a no-break space behind a colon", "by: [tenant]", "by:\u00a0[tenant]", "6: a character that only looks like a space"},
	{"a no-break space in a value", "default_plan: free", "default_plan:\u00a0free", "2: a character that only looks like a space"},
	{"a long dash", "    - id: tenant", "    – id: tenant", "5: – is a longer dash: a limit begins with - and a space"},
	{"an odd indent above", "      by: [tenant]\n      rate: 100/s", "\u00a0     by: [tenant]\n      rate: 100/s", "6: the line is indented by characters that only look like spaces: write spaces"},
	{"a no-break space in a comment", "default_plan: free", "# a:\u00a0b\ndefault_plan: free\nx: {a: b", "4: "},
	{"a fence of Markdown", "version: 1", "```yaml\nversion: 1", "1: ``` is a fence of Markdown: remove the line"},
	{"a template of Helm around limits", "    - id: tenant", "    {{- range .Values.limits }}\n    - id: tenant", "5: {{ }} is the placeholder of a template: fill the template in first"},
	{"a mapping for a rate", "100/s", "{limit: 100, window: 60}", "7: plans.free[0].rate: one value belongs here, not names with values: write the number and its period in one, such as rate: 100/m"},
	{"no list", "[tenant]", "null", "6: plans.free[0].by: a list belongs here: [tenant, op]"},
	{"a list in a list", "[tenant]", "[tenant, [user, ip]]", `6: plans.free[0].by: a dimension belongs here, not a list in the list: write "user|ip" for the first of them that a request has`},
	{"two dimensions in words", "[tenant]", "[tenant, user or ip]", `6: by: "user or ip" is not a dimension: use letters, digits, dots, dashes and underscores, and write "user|ip" for the first of them that a request has`},
	{"equals signs of a limit", "    - id: tenant", "    - id = first\n    - id: tenant", "5: plans.free[0]: a colon and a space stand between a name and its value: write id: first"},
	{"a - for each field", "", "version: 1\ndefault_plan: p\nplans:\n  p:\n    - id: a\n    - by: [tenant]\n    - rate: 5/s\n", "f:6: plans.p: the fields of one limit stand behind one -: write - in front of its id alone"},
	{"a cost of a window", "100/s", "5/s\n      algorithm: fixed_window\n      cost: 10", "9: cost: the limit holds 5 units, so a cost of 10 could never be admitted: raise COUNT of the rate, or lower cost"},
	{"a zone of 24 hours", "100/s", "5/d\n      algorithm: fixed_window\n      timezone: Europe/Berlin", "9: timezone: only a rate per day or month of the calendar has one: write rate: 5/day, as a d is any 24 hours"},
	{"a zone in small letters", "100/s", "5/day\n      algorithm: fixed_window\n      timezone: utc", `9: timezone: "utc" is not an IANA time zone: write UTC`},
	{"a place", "100/s", "5/day\n      algorithm: fixed_window\n      timezone: Zurich", `9: timezone: "Zurich" is not an IANA time zone: did you mean Europe/Zurich?`},
	{"a place of two words", "100/s", "5/day\n      algorithm: fixed_window\n      timezone: new york", `9: timezone: "new york" is not an IANA time zone: did you mean America/New_York?`},
	{"a zone in other letters", "100/s", "5/day\n      algorithm: fixed_window\n      timezone: EUROPE/Paris", `9: timezone: "EUROPE/Paris" is not an IANA time zone: did you mean Europe/Paris?`},
	{"a country", "100/s", "5/day\n      algorithm: fixed_window\n      timezone: Germany", `9: timezone: "Germany" is not an IANA time zone: for example Europe/Berlin`},
	{"an offset", "100/s", "5/day\n      algorithm: fixed_window\n      timezone: UTC+2", "an offset has no summer time: write the zone of a place, for example Europe/Berlin"},
	{"decimals of a share", "100/s", "5/s\n      enforce: 12.345%", "it has two decimals at most, and no blank: write 12.34%"},
	{"a blank in a share", "100/s", "5/s\n      enforce: 10 %", "it has two decimals at most, and no blank: write 10%"},
	{"a tiny share", "100/s", "5/s\n      enforce: 0.001%", "the least is 0.01%"},
	{"a point for thousands", "100/s", "1.000/m", "write 1/m, or 1000/m if the . separates thousands"},
	{"Latin-1", "acme", "\xe4", "13: a byte or character that YAML does not allow: save the file as text in UTF-8"},
}

// jargon matches words of the parser's messages.
var jargon = regexp.MustCompile(`did not find|while (scanning|parsing)|scalar|flow |block |token|found (a|un|char)|not allowed in this context`)

// notReadable matches the beginnings of messages about files that the parser does not read.
var notReadable = regexp.MustCompile(`not readable as (?:YAML|JSON): `)

// TestFlowFiles: a file that begins as JSON does may have words without quotes, comments and commas at the end, as YAML has.
func TestFlowFiles(t *testing.T) {
	for _, content := range []string{
		`{"version": 1, "shared": [{"id": "b", "by": ["ip"], "rate": "1/s", "on_error": "open", "when": {"ip": 10.0.0.0/8}}]}`,
		`{"version": 1, "shared": [{"id": 2fa, "by": ["ip"], "rate": 1/s, "on_error": open},]}`,
		"{\"version\": 1, # of the format\n\"shared\": [{\"id\": a, by: [ip], rate: \"1/s\", when: {region: 3rd}}]}",
	} {
		if _, _, err := ParseLimits("f", []byte(content), limit.CompileOptions{}); err != nil {
			t.Errorf("%s: %v", content, err)
		}
	}
}

// TestYAMLMistakes: a mistake in the form of a limits file is described by its line, what is wrong
// there, and what would be right.
func TestYAMLMistakes(t *testing.T) {
	if _, _, err := ParseLimits("f", []byte(goodFile), limit.CompileOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, row := range yamlMistakeRows {
		content := row.new
		if row.old != "" {
			content = strings.Replace(goodFile, row.old, row.new, 1)
		}
		_, _, err := ParseLimits("f", []byte(content), limit.CompileOptions{})
		var problems *limit.Problems
		if !errors.As(err, &problems) {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		got := notReadable.ReplaceAllString(problems.Error(), "")
		if !strings.Contains(got, row.want) || jargon.MatchString(got) || strings.Contains(got, ":0: ") {
			t.Errorf("%s: got\n%s\nwant %s", row.name, got, row.want)
		}
	}
}
