package edge_test

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/limitgate/limitgate/internal/edge"
)

// webRequest is a request as WAF sees it.
type webRequest struct {
	addr         netip.Addr
	method, path string
	key          string // in the header X-Api-Key
}

// webRule is a rule of a rendered web ACL.
type webRule struct {
	name          string
	limit, window int64
	aggregate     string
	scope         map[string]any // nil for all requests
	sets          map[string][]netip.Prefix
}

// rulesOf reads the rules of a rendered template, by its own reading of WAF's documentation.
func rulesOf(tb interface{ Fatalf(string, ...any) }, text []byte) []webRule {
	var parsed map[string]any
	if err := yaml.Unmarshal(text, &parsed); err != nil {
		tb.Fatalf("%v\n%s", err, text)
	}
	resources, _ := parsed["Resources"].(map[string]any)
	sets := map[string][]netip.Prefix{}
	for name, resource := range resources {
		addresses, _ := at(resource, "Properties", "Addresses").([]any)
		for _, a := range addresses {
			sets[name] = append(sets[name], netip.MustParsePrefix(a.(string)))
		}
	}
	listed, _ := at(resources["WebACL"], "Properties", "Rules").([]any)
	var rules []webRule
	for _, r := range listed {
		s := at(r, "Statement", "RateBasedStatement")
		scope, _ := at(s, "ScopeDownStatement").(map[string]any)
		rules = append(rules, webRule{
			name:  at(r, "Name").(string),
			limit: int64(at(s, "Limit").(int)), window: int64(at(s, "EvaluationWindowSec").(int)),
			aggregate: at(s, "AggregateKeyType").(string), scope: scope, sets: sets,
		})
	}
	return rules
}

func at(value any, path ...string) any {
	for _, key := range path {
		m, _ := value.(map[string]any)
		value = m[key]
	}
	return value
}

// counts reports whether a rule counts a request.
func (r webRule) counts(req webRequest) bool {
	if r.aggregate == "CUSTOM_KEYS" && req.key == "" {
		return false
	}
	return r.scope == nil || r.matches(r.scope, req)
}

func (r webRule) matches(statement any, req webRequest) bool {
	if inner := at(statement, "NotStatement", "Statement"); inner != nil {
		return !r.matches(inner, req)
	}
	if both, ok := at(statement, "AndStatement", "Statements").([]any); ok {
		for _, s := range both {
			if !r.matches(s, req) {
				return false
			}
		}
		return true
	}
	if set, ok := at(statement, "IPSetReferenceStatement", "Arn", "Fn::GetAtt").([]any); ok {
		for _, net := range r.sets[set[0].(string)] {
			if net.Contains(req.addr) {
				return true
			}
		}
		return false
	}
	match := at(statement, "ByteMatchStatement")
	if match == nil {
		panic(fmt.Sprintf("statement %v", statement))
	}
	part := req.path
	if _, method := at(match, "FieldToMatch").(map[string]any)["Method"]; method {
		part = req.method
	}
	text := at(match, "SearchString").(string)
	if at(match, "PositionalConstraint") == "EXACTLY" {
		return part == text
	}
	return strings.HasPrefix(part, text)
}

// wafRules renders a limits file, and returns its rules and the text of its warnings.
func wafRules(tb testing.TB, file string, change func(*edge.Options)) ([]webRule, string) {
	tb.Helper()
	opts := edge.Options{Kind: edge.KindWAF, Scope: edge.ScopeRegional, Margin: 1}
	if change != nil {
		change(&opts)
	}
	result, err := edge.Render(compile(tb, file), opts)
	var b strings.Builder
	for _, w := range result.Warnings {
		b.WriteString(w.Format("limits.yaml") + "\n")
	}
	if err != nil {
		b.WriteString(err.Error())
		return nil, b.String()
	}
	return rulesOf(tb, result.Template), b.String()
}

func namesOf(rules []webRule) string {
	var out []string
	for _, r := range rules {
		out = append(out, fmt.Sprintf("%s %d/%ds", strings.TrimPrefix(r.name, "limitgate-"), r.limit, r.window))
	}
	return strings.Join(out, ", ")
}

// TestWAFRules checks which rules limits become, and what is said of the others. With a margin of 1
// the numbers are those of the algorithms.
func TestWAFRules(t *testing.T) {
	key := func(o *edge.Options) { o.APIKeyHeader = "X-Api-Key" }
	for name, row := range map[string]struct {
		shared, plans string
		change        func(*edge.Options)
		want          string
		warning       string
	}{
		"token bucket":       {"[{id: ip, by: [ip], rate: 60/m, burst: 30}]", "", nil, "ip 90/60s", "the token_bucket 60/m burst 30"},
		"margin":             {"[{id: ip, by: [ip], rate: 60/m, burst: 30}]", "", func(o *edge.Options) { o.Margin = 1.5 }, "ip 135/60s", ""},
		"fixed window":       {"[{id: ip, by: [ip], rate: 60/m, algorithm: fixed_window}]", "", nil, "ip 120/60s", ""},
		"sliding log":        {"[{id: ip, by: [ip], rate: 60/m, algorithm: sliding_log}]", "", nil, "ip 60/60s", ""},
		"seconds":            {"[{id: ip, by: [ip], rate: 10/s, algorithm: sliding_window}]", "", nil, "ip 610/60s", "all of them may come at once"},
		"nearest window":     {"[{id: ip, by: [ip], rate: 100/4m, algorithm: sliding_log}]", "", nil, "ip 200/300s", ""},
		"longer than any":    {"[{id: ip, by: [ip], rate: 100/1h, algorithm: sliding_log}]", "", nil, "ip 100/600s", "WAF's longest window is 600 s"},
		"few":                {"[{id: ip, by: [ip], rate: 4/m, algorithm: sliding_log}]", "", nil, "ip 20/300s", ""},
		"very few":           {"[{id: ip, by: [ip], rate: 3/1h, algorithm: sliding_log}]", "", nil, "ip 10/600s", "rule ip: 10 requests"},
		"cost":               {"[{id: ip, by: [ip], rate: 60/m, cost: 4, burst: 30}]", "", nil, "ip 22/60s", "cost: 4"},
		"too many":           {"[{id: ip, by: [ip], rate: 1100000000/m, burst: 1000000000}]", "", nil, "", "above WAF's maximum of 2000000000"},
		"closed":             {"[{id: ip, by: [ip], rate: 60/m, on_error: closed, missing: deny, max_cost: 3}]", "", nil, "ip 120/60s", "max_cost is not checked; on_error: closed is not known: requests pass while the store is unavailable; missing: deny"},
		"auto-local":         {"[{id: ip, by: [ip], rate: 60/m, store: auto-local}]", "", nil, "ip 240/60s", "store: auto-local"},
		"shadow":             {"[{id: ip, by: [ip], rate: 60/m, mode: shadow}]", "", nil, "", "mode: shadow enforces nothing"},
		"off":                {"[{id: ip, by: [ip], rate: 60/m, mode: 'off'}]", "", nil, "", "mode: off enforces nothing"},
		"share":              {"[{id: ip, by: [ip], rate: 60/m, enforce: 10%}]", "", nil, "", "enforce 10% of its buckets"},
		"groups":             {"[{id: ip, by: [ip], rate: 60/m}, {id: hour, by: [ip], group: hour, rate: 600/1h, algorithm: sliding_log}]", "", nil, "ip 120/60s, hour 600/600s", ""},
		"path in its place":  {"[{id: ip, by: [ip], rate: 60/m}, {id: login, by: [ip], when: {op: POST /login}, rate: 20/m}]", "", nil, "ip 160/60s, login 40/60s", "rule login: 40 requests POST /login of an address"},
		"path in a group":    {"[{id: ip, by: [ip], rate: 60/m}, {id: login, by: [ip], group: login, when: {op: POST /login}, rate: 20/m}]", "", nil, "ip 120/60s, login 40/60s", ""},
		"paths of a prefix":  {"[{id: pay, by: [ip], when: {op: POST /pay/*}, rate: 20/m}]", "", nil, "pay 40/60s", "POST /pay/*"},
		"path for all":       {"[{id: export, by: [op], when: {op: POST /export}, rate: 20/m}]", "", nil, "export 40/60s", "each address has it for itself"},
		"each op":            {"[{id: each, by: [ip, op], rate: 20/m}]", "", nil, "", "it counts each op for itself"},
		"template":           {"[{id: user, by: [ip], when: {op: 'GET /users/{id}'}, rate: 20/m}]", "", nil, "", "no other op than those like POST /path"},
		"name of an op":      {"[{id: login, by: [ip], when: {op: login}, rate: 20/m}]", "", nil, "", "no other op than those like POST /path"},
		"condition":          {"[{id: ann, by: [ip], when: {user: ann}, rate: 20/m}]", "", nil, "", "a condition on user"},
		"dimension":          {"[{id: user, by: ['user|ip'], rate: 20/m}]", "", nil, "", "it counts by user|ip, which WAF does not know"},
		"a tenant's own":     {"[{id: ip, by: [ip], rate: 60/m}, {id: big, by: [ip], when: {tenant: big}, rate: 100/m}]", "", nil, "ip 320/60s", ""},
		"allowed tenant":     {"[{id: ip, by: [ip], rate: 60/m}, {id: big, by: [ip], when: {tenant: big}, action: allow}]", "", nil, "", "it does not hold all requests of an address"},
		"banned":             {"[{id: ip, by: [ip], rate: 60/m}, {id: bad, action: deny, when: {ip: 192.0.2.0/24}}]", "", nil, "ip 120/60s", "action: deny has no rate"},
		"plan's own":         {"[{id: ip, by: [ip], rate: 60/m}]", "{p: [{id: perip, by: [tenant, ip], rate: 600/m}]}", nil, "ip 1200/60s", "it counts by tenant, ip"},
		"allowed by a plan":  {"[{id: ip, by: [ip], rate: 60/m}]", "{p: [{id: vip, by: [ip], action: allow}]}", nil, "", "it does not hold all requests of an address"},
		"banned by a plan":   {"[{id: ip, by: [ip], rate: 60/m}]", "{p: [{id: bad, by: [ip], action: deny}]}", nil, "ip 120/60s", "bad (plan p): action: deny has no rate"},
		"key":                {"[]", "{p: [{id: tenant, by: [tenant], rate: 60/m}], q: [{id: tenant, by: [tenant], rate: 600/m}]}", key, "api-key 1200/60s", "rule api-key has the largest"},
		"key without limit":  {"[]", "{p: [{id: tenant, by: [tenant], rate: 60/m}], q: []}", key, "", "no limit by tenant alone holds all requests of tenants of plan q"},
		"key, replaced":      {"[]", "{p: [{id: tenant, by: [tenant], rate: 60/m}, {id: up, by: [tenant, op], when: {op: PUT /f}, rate: 6/m, replaces: [tenant]}]}", key, "api-key 132/60s", ""},
		"key, replaced by a": {"[]", "{p: [{id: tenant, by: [tenant], rate: 60/m}, {id: up, by: [tenant, op], rate: 6/m, replaces: [tenant]}]}", key, "", "there is no rule for API keys"},
		"concurrency":        {"[{id: ip, by: [ip], rate: 60/m}]", "{p: [{id: work, by: [tenant], algorithm: concurrency, slots: 2}]}", nil, "ip 120/60s", "work (plan p): it counts requests at work at the same time"},
	} {
		t.Run(name, func(t *testing.T) {
			file := "version: 1\nshared: " + row.shared + "\n"
			if row.plans != "" {
				file += "default_plan: p\nplans: " + row.plans + "\n"
			}
			rules, warnings := wafRules(t, file, row.change)
			if got := namesOf(rules); got != row.want || !strings.Contains(warnings, row.warning) {
				t.Errorf("rules %q, want %q; warnings, which should have %q:\n%s", got, row.want, row.warning, warnings)
			}
		})
	}
}

// TestWAFScope checks which requests rules count beside exempt addresses and operations.
func TestWAFScope(t *testing.T) {
	rules, warnings := wafRules(t, `
version: 1
shared:
  - {id: ip, by: [ip], rate: 60/m}
  - {id: office, by: [ip], when: {ip: 198.51.100.0/24}, action: allow}
  - {id: partner, by: [ip], when: {ip: "2001:db8::/32"}, rate: 600/m}
  - {id: suspect, by: [ip], when: {ip: 203.0.113.0/24}, rate: 6/m}
  - {id: health, by: [ip], when: {op: GET /health}, action: allow}
  - {id: login, by: [ip], when: {op: POST /login*}, rate: 20/m}
`, nil)
	if got := namesOf(rules); got != "ip 160/60s, login 40/60s" {
		t.Fatalf("rules %q\n%s", got, warnings)
	}
	for _, row := range []struct {
		addr, op  string
		ip, login bool
	}{
		{"192.0.2.1", "GET /", true, false},
		{"192.0.2.1", "POST /login", true, true},
		{"192.0.2.1", "POST /login/again", true, true},
		{"192.0.2.1", "GET /login", true, false},
		{"192.0.2.1", "GET /health", false, false},
		{"192.0.2.1", "GET /healthy", true, false},
		{"192.0.2.1", "POST /health", true, false},
		{"198.51.100.9", "GET /", false, false},
		{"203.0.113.9", "GET /", true, false},
		{"2001:db8::1", "GET /", false, false},
		{"2001:db9::1", "GET /", true, false},
	} {
		method, path, _ := strings.Cut(row.op, " ")
		req := webRequest{addr: netip.MustParseAddr(row.addr), method: method, path: path}
		if ip, login := rules[0].counts(req), rules[1].counts(req); ip != row.ip || login != row.login {
			t.Errorf("%s of %s: counted by ip %v, by login %v", row.op, row.addr, ip, login)
		}
	}
	for _, want := range []string{"rule ip leaves out 198.51.100.0/24", "rule ip leaves out 2001:db8::/32", "rule ip admits more to 203.0.113.0/24", "rule ip leaves out GET /health"} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no warning %q:\n%s", want, warnings)
		}
	}
}

// TestWAFFull checks that a web ACL has ten rules, those for all requests first, and that the others
// are named.
func TestWAFFull(t *testing.T) {
	file := "version: 1\nmax_levels: 64\nshared:\n"
	for i := range 12 {
		file += fmt.Sprintf("  - {id: p%d, by: [ip], group: p%d, when: {op: GET /%d}, rate: 100/m}\n", i, i, i)
	}
	rules, warnings := wafRules(t, file+"  - {id: ip, by: [ip], rate: 60/m}\n", nil)
	if len(rules) != 10 || rules[0].name != "limitgate-ip" || rules[9].name != "limitgate-p8" {
		t.Errorf("%d rules: %s", len(rules), namesOf(rules))
	}
	for i := range 12 {
		if full := strings.Contains(warnings, fmt.Sprintf("p%d: rule p%d is left out: a web ACL has at most 10", i, i)); full != (i >= 9) {
			t.Errorf("p%d left out: %v\n%s", i, full, warnings)
		}
	}
}

// TestWAFCapacity checks that a web ACL above the included capacity has a warning, and that none is
// above the maximum.
func TestWAFCapacity(t *testing.T) {
	file := "version: 1\nshared:\n"
	for g := range 3 {
		file += fmt.Sprintf("  - {id: ip%d, by: [ip], group: g%d, rate: 60/m}\n", g, g)
		for i := range 500 {
			file += fmt.Sprintf("  - {id: a%d-%d, by: [ip], group: g%d, when: {op: GET /%d}, action: allow}\n", g, i, g, i)
		}
	}
	rules, warnings := wafRules(t, file, nil)
	if !strings.Contains(warnings, " bytes: CloudFormation takes at most 1000000") {
		t.Error("a template that is too large has no warning")
	}
	if len(rules) != 2 || !strings.Contains(warnings, "the rules take 4004 WCU: above 1500") || !strings.Contains(warnings, "rule ip2 is left out: a web ACL has at most 5000 WCU") {
		t.Errorf("%s\n%.2000s", namesOf(rules), warnings)
	}
}

// TestWAFNames checks that names that WAF takes for equal differ.
func TestWAFNames(t *testing.T) {
	rules, _ := wafRules(t, `
version: 1
shared:
  - {id: a.b, by: [ip], rate: 60/m}
  - {id: a_b, by: [ip], group: g, rate: 60/m}
`, nil)
	if len(rules) != 2 || rules[0].name != "limitgate-a_b" || rules[1].name != "limitgate-a_b-2" {
		t.Errorf("rules %s", namesOf(rules))
	}
}
