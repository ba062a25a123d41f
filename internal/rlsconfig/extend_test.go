package rlsconfig

import (
	"fmt"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// extendedRules are the rules of the tests of extensions.
const extendedRules = `
domain: shop
descriptors:
  - key: tenant
    rate_limit: {unit: minute, requests_per_unit: 600}
    descriptors:
      - {key: path, value: /login, rate_limit: {unit: hour, requests_per_unit: 10}}
      - {key: path, value: /free, rate_limit: {unlimited: true}}
      - {key: path, value: /none, rate_limit: {unit: day, requests_per_unit: 0}}
  - {key: report, rate_limit: {unit: day, requests_per_unit: 5}, quota_mode: true}
  - {key: plain, rate_limit: {unit: second, requests_per_unit: 7}}
  - {key: month, rate_limit: {unit: month, requests_per_unit: 1000}}
`

// parseExtended parses the rules with extensions. Mistakes in the shape of these are an error.
func parseExtended(t *testing.T, extensions string) (*Config, string) {
	t.Helper()
	opts, err := Options{}.WithExtensions("x.yaml", []byte(extensions))
	if err != nil {
		return nil, err.Error()
	}
	c, problems := Parse([]File{{Name: "rules.yaml", Content: []byte(extendedRules)}}, opts)
	var all []string
	for _, p := range problems {
		text := p.String()
		if p.Warning {
			text += " (warning)"
		}
		all = append(all, text)
	}
	return c, strings.Join(all, "\n")
}

// TestExtend checks what rules get of extensions.
func TestExtend(t *testing.T) {
	c, problems := parseExtended(t, `
version: 1
domains:
  shop:
    on_error: closed
    on_denied: nothing
    rules:
      tenant:
        algorithm: token_bucket
        burst: 50
        on_error: open
        lease: {size: 5, ttl: 3s}
        on_denied: count
      tenant.path_/login:
        also:
          - {id: daily, rate: 20/day, algorithm: fixed_window, timezone: Europe/Berlin}
          - {id: fast, rate: 2/s, algorithm: token_bucket, burst: 3, on_error: open}
      report: {calendar: true}
      month: {calendar: true, timezone: America/Lima}
`)
	if problems != "" {
		t.Fatal(problems)
	}
	describe := func(of Counted) string {
		l := of.Limit
		return fmt.Sprintf("%s %q %s, %s, capacity %d, %v, lease %s", l.ID, of.Suffix, l.Rate.Text, l.Params.Algorithm, l.Params.Capacity, l.OnError == limit.OnErrorClosed, l.Lease)
	}
	var got []string
	for _, r := range c.Limited() {
		text := fmt.Sprint(r.Path, " ", r.OnDenied)
		if r.Own.Limit != nil {
			text += " | " + describe(r.Own)
		}
		for _, also := range r.Also {
			text += " | " + also.Name + " " + describe(also)
		}
		got = append(got, text)
	}
	want := `month 1 | shop.month ";;f" 1000/month, fixed_window, capacity 1000, true, lease -
plain 1 | shop.plain "" 7/1s, fixed_window, capacity 7, true, lease -
report 1 | shop.report ";;f" 5/day, fixed_window, capacity 5, true, lease -
tenant 2 | shop.tenant ";;t" 600/60s, token_bucket, capacity 50, false, lease 5 for 3s
tenant.path_/free 1
tenant.path_/login 1 | shop.tenant.path_/login "" 10/3600s, fixed_window, capacity 10, true, lease - | daily shop.tenant.path_/login.daily ";;daily;;f" 20/day, fixed_window, capacity 20, true, lease - | fast shop.tenant.path_/login.fast ";;fast;;t" 2/s, token_bucket, capacity 3, false, lease -
tenant.path_/none 1`
	if all := strings.Join(got, "\n"); all != want {
		t.Errorf("got\n%s\nwant\n%s", all, want)
	}
	if d := c.Domain("shop"); !d.FailsClosed || d.OnDenied != OnDeniedNothing {
		t.Errorf("the domain is %+v", d)
	}
	if p := c.Domain("shop").Match([]Entry{{"month", "x"}}).Own.Limit.Params; p.Algorithm != bucket.AlgorithmCalendarWindow {
		t.Errorf("a month is %s", p.Algorithm)
	}
}

// TestExtendMistakes checks the texts of mistakes in extensions.
func TestExtendMistakes(t *testing.T) {
	rule := func(path, fields string) string {
		return "version: 1\ndomains:\n  shop:\n    rules:\n      " + path + ": " + fields + "\n"
	}
	for _, row := range []struct{ name, file, want string }{
		{"no mapping", "x\n", "x.yaml:1: names with values belong here: version: 1 and domains, as in docs/envoy.md"},
		{"no version", "domains: {}\n", "x.yaml:1: version: the file does not say which format it is in: write version: 1"},
		{"unknown key", "version: 1\ndomain: {}\n", "x.yaml:2: domain: unknown key; did you mean domains?"},
		{"unknown key of a rule", rule("tenant", "{rate: 5/s}"), "x.yaml:5: domains.shop.rules.tenant.rate: unknown key; the keys are algorithm, also, burst, calendar, lease, on_denied, on_error, timezone"},
		{"unknown domain", "version: 1\ndomains: {shp: {}}\n", "x.yaml:2: domains.shp: there is no such domain, so this has no effect; did you mean shop? (warning)"},
		{"unknown path", rule("tenant.path_login", "{}"), "x.yaml:5: domains.shop.rules.tenant.path_login: no limit of the domain has this path, so this has no effect; did you mean tenant.path_/login? (warning)"},
		{"burst of a window", rule("tenant", "{burst: 5}"), "x.yaml:5: domains.shop.rules.tenant.burst: only a token_bucket has one: a fixed_window admits COUNT in each window"},
		{"algorithm with slots", rule("tenant", "{algorithm: concurrency}"), "x.yaml:5: domains.shop.rules.tenant.algorithm: concurrency is not for descriptors: use token_bucket, sliding_window or fixed_window"},
		{"unknown algorithm", rule("tenant", "{algorithm: token}"), "x.yaml:5: domains.shop.rules.tenant.algorithm: \"token\" is not one of fixed_window, sliding_window, token_bucket"},
		{"calendar of hours", rule("tenant.path_/login", "{calendar: true}"), "x.yaml:5: domains.shop.rules.tenant.path_/login.calendar: only days and months follow the calendar, and the unit of the rule is HOUR: remove it"},
		{"calendar that is no switch", rule("month", "{calendar: maybe}"), `x.yaml:5: domains.shop.rules.month.calendar: "maybe" is not one of false, true`},
		{"rule without a limit", rule("tenant.path_/free", "{algorithm: token_bucket}"), "x.yaml:5: domains.shop.rules.tenant.path_/free: the rule counts nothing, as it is unlimited or admits no request: remove this, or give it a limit"},
		{"on_denied", rule("tenant", "{on_denied: all}"), `x.yaml:5: domains.shop.rules.tenant.on_denied: "all" is not one of count, nothing`},
		{"on_error of a domain", "version: 1\ndomains: {shop: {on_error: close}}\n", `x.yaml:2: domains.shop.on_error: "close" is not one of closed, open`},
		{"further limit without an id", rule("tenant", "{also: [{rate: 5/s}]}"), "x.yaml:5: domains.shop.rules.tenant.also[0].id: a further limit needs an id: 1 to 64 letters, digits, dots, dashes and underscores"},
		{"further limit twice", rule("tenant", "{also: [{id: a, rate: 5/s}, {id: a, rate: 6/s}]}"), `x.yaml:5: domains.shop.rules.tenant.also[1].id: "a" is the id of two limits of the rule`},
		{"further limit without a rate", rule("tenant", "{also: [{id: a}]}"), "x.yaml:5: domains.shop.rules.tenant.also[0].rate: every limit needs one, COUNT/PERIOD, for example 100/s: to refuse or to exempt say action: deny or action: allow instead"},
		{"five further limits", rule("tenant", "{also: [{id: a, rate: 5/s}, {id: b, rate: 5/s}, {id: c, rate: 5/s}, {id: d, rate: 5/s}, {id: e, rate: 5/s}]}"), "x.yaml:5: domains.shop.rules.tenant.also: there are 5 further limits, at most 4"},
		{"further limit with an id of other characters", rule("tenant", "{also: [{id: a;;b, rate: 5/s}]}"), "x.yaml:5: domains.shop.rules.tenant.also[0].id: a further limit needs an id: 1 to 64 letters, digits, dots, dashes and underscores"},
		{"tenant_key that no rule has", "version: 1\ndomains: {shop: {tenant_key: tennant}}\n", "x.yaml:2: domains.shop.tenant_key: no descriptor of the files has this key, so it has no effect on their limits; did you mean tenant? (warning)"},
		{"tenant_key of a lower level", "version: 1\ndomains: {shop: {tenant_key: path}}\n", ""},
		{"also that is a mapping", rule("tenant", "{also: {id: a}}"), "x.yaml:5: domains.shop.rules.tenant.also: a list of limits belongs here: lines that begin with - id: NAME"},
	} {
		if _, got := parseExtended(t, row.file); got != row.want {
			t.Errorf("%s:\ngot  %s\nwant %s", row.name, got, row.want)
		}
	}
}

// TestFurtherNames: no further limit has the counters of its rule or of another one, whatever its id is.
func TestFurtherNames(t *testing.T) {
	c, problems := parseExtended(t, "version: 1\ndomains: {shop: {rules: {tenant: {algorithm: token_bucket, also: [{id: t, rate: 5/h}, {id: f, rate: 5/h}, {id: s, rate: 5/h, algorithm: sliding_window}]}}}}\n")
	if problems != "" {
		t.Fatal(problems)
	}
	r := c.Domain("shop").Match([]Entry{{"tenant", "a"}})
	seen := map[string]bool{"": true}
	for _, of := range append([]Counted{r.Own}, r.Also...) {
		if seen[of.Suffix] {
			t.Errorf("%q is the suffix of two limits", of.Suffix)
		}
		seen[of.Suffix] = true
	}
}

// TestSlots: a counter is in the slot of its tenant if the name of the counter has it, with addresses hashed.
func TestSlots(t *testing.T) {
	const rules = `
domain: "a;b"
descriptors:
  - key: user
    rate_limit: {unit: hour, requests_per_unit: 1}
    descriptors: [{key: path, rate_limit: {unit: hour, requests_per_unit: 1}}]
  - key: path
    descriptors:
      - {key: user, rate_limit: {unit: hour, requests_per_unit: 1}}
      - {key: user, value: root, rate_limit: {unit: hour, requests_per_unit: 1}}
      - {key: user, value: "x*", rate_limit: {unit: hour, requests_per_unit: 1}}
      - {key: user, value: "y*", share_threshold: true, rate_limit: {unit: hour, requests_per_unit: 1}}
`
	hash := func(dst []byte, _ string) []byte { return append(dst, "hashed"...) }
	for _, row := range []struct {
		tenantKey, addresses string
		entries              []Entry
		slot, own            string
	}{
		{"user", "", []Entry{{"user", "ann;"}}, "a%3Bb;ann%3B", "a%3Bb;ann%3B"},
		{"user", "user", []Entry{{"user", "10.0.0.1"}}, "a%3Bb;hashed", "a%3Bb;hashed"},
		{"user", "", []Entry{{"user", "ann"}, {"path", "/"}}, "a%3Bb;ann", "a%3Bb;ann"},
		{"user", "", []Entry{{"path", "/"}, {"user", "bob"}}, "a%3Bb;bob", "a%3Bb;bob"},
		{"user", "", []Entry{{"path", "/"}, {"user", "root"}}, "a%3Bb;root", "a%3Bb;root"},
		{"user", "user", []Entry{{"path", "/"}, {"user", "root"}}, "a%3Bb;hashed", "a%3Bb;hashed"},
		{"user", "", []Entry{{"path", "/"}, {"user", "xy"}}, "a%3Bb;xy", "a%3Bb;xy"},
		{"user", "", []Entry{{"path", "/"}, {"user", "yx"}}, "", "a%3Bb;yx"}, // all share a counter
		{"path", "", []Entry{{"user", "ann"}}, "", ""},
		{"", "", []Entry{{"user", "ann"}}, "", ""},
	} {
		text := "version: 1\ndomains: {\"a;b\": {tenant_key: \"" + row.tenantKey + "\"}}\n"
		if row.tenantKey == "" {
			text = "version: 1\n"
		}
		opts, err := Options{AddressKeys: []string{row.addresses}}.WithExtensions("x.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		c, problems := Parse([]File{{Name: "rules.yaml", Content: []byte(rules)}}, opts)
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		d := c.Domain("a;b")
		if slot, own := d.Slot(d.Match(row.entries), row.entries, hash), d.OwnSlot(row.entries, hash); slot != row.slot || own != row.own {
			t.Errorf("%+v: %q and %q, want %q and %q", row.entries, slot, own, row.slot, row.own)
		}
	}
}
