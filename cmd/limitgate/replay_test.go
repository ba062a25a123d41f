package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestReplayLacking: a template that names what no line has, or few lines have, is reported.
func TestReplayLacking(t *testing.T) {
	const line = `203.0.113.7 - - [01/Mar/2026:10:00:05 +0000] "GET /a HTTP/1.1" 200 1` + "\n"
	log := filepath.Join(t.TempDir(), "access.log")
	content := strings.Repeat(line, 3) + strings.Replace(line, "/a", "/a?key=k", 1)
	if err := os.WriteFile(log, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	const none = ": no line of the log has a value for --tenant {query:nope}: all requests are of one tenant, - (warning)\n"
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"replay", "--limits", sampleLimits, "--tenant", "{query:nope}"}, "limitgate replay" + none},
		{[]string{"replay", "--limits", sampleLimits, "--compare", sampleLimits, "--tenant", "{query:nope}"}, "limitgate replay" + none},
		{[]string{"limits", "suggest", "--tenant", "{query:nope}"}, "limitgate limits suggest" + none},
		{[]string{"replay", "--limits", sampleLimits, "--tenant", "{query:key}"}, "limitgate replay: 3 of 4 lines have no value for --tenant {query:key}: they are of one tenant, - (warning)\n"},
		{[]string{"replay", "--limits", sampleLimits, "--dim", "user={user}"}, "limitgate replay: no line of the log has a value for --dim user={user}: no request has that dimension (warning)\n"},
		{[]string{"replay", "--limits", sampleLimits, "--dim", "key={query:key}"}, ""},
		{[]string{"replay", "--limits", sampleLimits, "--tenant", "-"}, ""},
		{[]string{"replay", "--limits", sampleLimits, "--tenant", "key"}, "limitgate replay: --tenant key has no field of the log: all requests are of that tenant; a field stands in braces, such as {user} (warning)\n"},
		{[]string{"limits", "suggest", "--op", "GET /"}, "limitgate limits suggest: --op GET / has no field of the log: all requests have that op; a field stands in braces, such as {method} {path} (warning)\n"},
		{[]string{"replay", "--limits", sampleLimits}, ""},
	} {
		if out, errs, code := command(append(row.args, log)...); code != exitOK || errs != row.want || out == "" {
			t.Errorf("%s: exit %d, %q in place of %q", row.args, code, errs, row.want)
		}
	}
}

// TestReplayOfProxy: a log with the address of a proxy for all requests is reported, and one with that of a client, or of few requests, is not.
func TestReplayOfProxy(t *testing.T) {
	const warning = "all requests have one address of a private network: the log may have that of a proxy in front"
	for name, row := range map[string]struct {
		first, last string
		requests    int
		want        bool
	}{
		"a proxy":     {"10.0.0.9", "10.0.0.9", 30, true},
		"the machine": {"127.0.0.1", "127.0.0.1", 30, true},
		"few":         {"10.0.0.9", "10.0.0.9", 5, false},
		"a client":    {"203.0.113.7", "203.0.113.7", 30, false},
		"two":         {"10.0.0.9", "10.0.0.8", 30, false},
	} {
		log := filepath.Join(t.TempDir(), "access.log")
		line := func(addr string) string {
			return addr + ` - - [01/Mar/2026:10:00:05 +0000] "GET /a HTTP/1.1" 200 1` + "\n"
		}
		if err := os.WriteFile(log, []byte(strings.Repeat(line(row.first), row.requests)+line(row.last)), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"replay", "--limits", sampleLimits}, {"limits", "suggest"}} {
			if _, errs, code := command(append(args, log)...); code != exitOK || strings.Contains(errs, warning) != row.want {
				t.Errorf("%s, %s: exit %d, %q", name, args, code, errs)
			}
		}
	}
}

// TestReplayUnmet: a dimension that limits need and no request has is reported, in the report and in its JSON.
func TestReplayUnmet(t *testing.T) {
	dir := t.TempDir()
	log, limits, byUser := filepath.Join(dir, "access.log"), filepath.Join(dir, "limits.yaml"), filepath.Join(dir, "user.yaml")
	for name, content := range map[string]string{
		byUser: "version: 1\ndefault_plan: p\nplans: {p: [{id: user, by: [tenant, user], rate: 5/s}]}\n",
		log:    `203.0.113.7 - - [01/Mar/2026:10:00:05 +0000] "GET /a HTTP/1.1" 200 1` + "\n",
		limits: `version: 1
default_plan: p
plans:
  p:
    - {id: key-api, by: [tenant, x_api_key], rate: 5/s}
    - {id: key-day, by: [tenant, x_api_key], group: day, rate: 5/h}
    - {id: path, by: [tenant], when: {path: /a}, rate: 5/s}
    - {id: chain, by: [tenant, session|ip], rate: 5/s}
    - {id: shared, by: [tenant, device], missing: share, rate: 5/s}
    - {id: off, by: [tenant, region], mode: off, rate: 5/s}
`,
	} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const tenant = "every request is of the tenant web, and limits of plans count by tenant: --tenant TEMPLATE says what of a line is the tenant, such as {host}, the address, as its lines have no users and no queries"
	const key = "no request has x_api_key, which limits key-api and key-day need: --dim x_api_key=TEMPLATE"
	const path = "no request has path, which limit path needs: --dim path={path}"
	const device = "no request has device, so that requests share the bucket of those without it: --dim device=TEMPLATE"
	for _, row := range []struct {
		args []string
		want []string
		not  string
	}{
		{nil, []string{"WARNING: " + tenant + "\n", "WARNING: " + key + "\n", "WARNING: " + path + "\n"}, "has session"},
		{[]string{"--compare", limits}, []string{"WARNING: " + key + "\n", "WARNING: " + path + "\n", "WARNING: " + device + "\n"}, "region"},
		{[]string{"--limits", byUser}, []string{"WARNING: no request has user, which limit user needs: the lines of the log have no user; --dim user=TEMPLATE takes it from another field, such as {query:user}\n"}, "user={user}"},
		{[]string{"--limits", byUser, "--dim", "usr={ua_family}-"}, []string{"WARNING: no limit uses the dimension usr of --dim; did you mean user?\n"}, "dimension user"},
		{[]string{"--json"}, []string{`"` + key + `"`, `"` + path + `"`}, "region"},
		{[]string{"--dim", "path={path}", "--dim", "x_api_key={ua_family}-", "--dim", "device={ua_family}-", "--tenant", "{host}"}, nil, "WARNING"},
	} {
		args := append([]string{"replay"}, row.args...)
		if !slices.Contains(args, "--limits") {
			args = append(args, "--limits", limits)
		}
		out, errs, code := command(append(args, log)...)
		for _, want := range row.want {
			if strings.Count(out, want) != 1 {
				t.Errorf("%s: %s%s, want once %s", row.args, out, errs, want)
			}
		}
		if code != exitOK || strings.Contains(out, row.not) {
			t.Errorf("%s: exit %d, %s%s", row.args, code, out, errs)
		}
	}
}

// TestLintWithoutStrict: flags that only --strict uses are reported without it.
func TestLintWithoutStrict(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"--instances 4", "limitgate limits lint: --instances has no effect without --strict (warning)\n"},
		{"--backstop-total-rate 100", "limitgate limits lint: --backstop-total-rate has no effect without --strict (warning)\n"},
		{"", ""},
	} {
		args := append([]string{"limits", "lint", sampleLimits}, strings.Fields(row.args)...)
		if _, errs, code := command(args...); code != exitOK || errs != row.want {
			t.Errorf("%s: exit %d, %q", row.args, code, errs)
		}
	}
}

// TestKeyMeant: a key in other letters is suggested.
func TestKeyMeant(t *testing.T) {
	for arg, want := range map[string]string{"shared": "SHARED", "Plan#free": "PLAN#free", "tenant#Acme": "TENANT#Acme", "SHARED": "", "acme": "", "plan#": ""} {
		if got := keyMeant(arg); got != want {
			t.Errorf("%s: %q, want %q", arg, got, want)
		}
	}
}

// TestReplayPaths: replay and suggest warn of ops that are paths of one route, with the template that makes one op of
// them.
func TestReplayPaths(t *testing.T) {
	var log strings.Builder
	for i := range 100 {
		fmt.Fprintf(&log, "192.0.2.1 - - [01/Mar/2026:10:%02d:%02d +0000] \"GET /images/%d HTTP/1.1\" 200 5\n", i/60, i%60, i)
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte(log.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	byOp := func(when string) string {
		return writeLimits(t, "version: 1\ndefault_plan: p\nplans: {p: [{id: a, by: [tenant, op], "+when+"rate: 5/s}]}\n")
	}
	const fact = "100 ops are paths of one route, GET /images/{id}, and limits by op count each apart: "
	const template, route, paths = "--op '{method} {route}' makes one op", "--op '{route}' makes one op", "{method} {path}"
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"limits", "suggest", path}, ""},
		{[]string{"limits", "suggest", "--op", paths, path}, fact + template},
		{[]string{"limits", "suggest", "--op", "{method} {path:1}", path}, ""},
		{[]string{"replay", "--limits", byOp(""), path}, ""},
		{[]string{"replay", "--limits", byOp(""), "--op", paths, path}, fact + template},
		{[]string{"replay", "--limits", byOp(""), "--op", "{path}", path}, strings.Replace(fact, "GET /", "/", 1) + route},
		{[]string{"replay", "--limits", byOp(`when: {op: "GET /images/*"}, `), "--op", paths, path}, fact + template},
		{[]string{"replay", "--limits", byOp(`when: {op: "GET /files/*"}, `), "--op", paths, path}, ""},
		{[]string{"replay", "--limits", byOp("mode: off, "), "--op", paths, path}, ""},
		{[]string{"replay", "--limits", byOp(""), "--op", paths, "--compare", byOp(""), path}, fact + template},
	} {
		_, errs, code := command(row.args...)
		if code != exitOK || strings.Count(errs, "paths of one route") != min(1, len(row.want)) || !strings.Contains(errs, row.want) {
			t.Errorf("%s: exit %d: %s, want %s", row.args, code, errs, row.want)
		}
	}
}

// TestReplayTenant: replay and suggest say that all requests are of one tenant, unless a template names another.
func TestReplayTenant(t *testing.T) {
	limits := func(tenants string) string {
		return writeLimits(t, "version: 1\ndefault_plan: p\nplans: {p: [{id: a, by: [tenant], rate: 5/s}]}\ntenants: "+tenants+"\n")
	}
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("192.0.2.1 - acme [01/Mar/2026:10:00:05 +0000] \"GET /a HTTP/1.1\" 200 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const replayed = "WARNING: every request is of the tenant web, and no listed tenant occurs: --tenant TEMPLATE says what of a line is the tenant"
	const noneListed = "WARNING: every request is of the tenant web, and limits of plans count by tenant: --tenant TEMPLATE says what of a line is the tenant"
	const suggested = "# All of them count as one tenant, web: --tenant TEMPLATE says"
	for _, row := range []struct {
		args []string
		text string
		said bool
	}{
		{[]string{"replay", "--limits", limits("{acme: {}}"), path}, replayed, true},
		{[]string{"replay", "--limits", limits("{acme: {}}"), "--tenant", "{user}", path}, replayed, false},
		{[]string{"replay", "--limits", limits("{web: {}}"), path}, replayed, false},
		{[]string{"replay", "--limits", limits("{}"), path}, noneListed, true},
		{[]string{"replay", "--limits", limits("{}"), "--tenant", "{user}", path}, noneListed, false},
		{[]string{"limits", "suggest", path}, suggested, true},
		{[]string{"limits", "suggest", "--tenant", "{user}", path}, suggested, false},
	} {
		if out, errs, code := command(row.args...); code != exitOK || strings.Contains(out, row.text) != row.said {
			t.Errorf("%s: exit %d: %s%s", row.args, code, out, errs)
		}
	}
}

// TestReplayNames: replay names the tenants and the ops of a log where those of the limits file are others.
func TestReplayNames(t *testing.T) {
	limits := writeLimits(t, `
version: 1
default_plan: free
plans:
  free: [{id: login, by: [tenant], when: {op: /login}, rate: 5/s}, {id: pay, by: [tenant], when: {op: "POST /pay"}, rate: 5/s}]
  gold: [{id: other, by: [tenant], when: {op: GET /other}, rate: 5/s}]
tenants: {Acme: {}}
shared: [{id: off, by: [ip], when: {op: GET /off}, rate: 5/s, mode: off}]
`)
	line := func(user, op string) string {
		return "192.0.2.1 - " + user + " [01/Mar/2026:10:00:05 +0000] \"" + op + " HTTP/1.1\" 200 5\n"
	}
	const (
		noTenant = "WARNING: no tenant that the file lists, such as \"Acme\", occurs, and all requests have the default plan: --tenant {user} makes tenants such as \"acme\"\n"
		login    = "WARNING: no request met limit login: its condition on op, /login, does not hold for the op \"POST /login\" of the log (2 requests): it has a method, and the condition has none\n"
	)
	noOp := func(limits, op, count string) string {
		return "WARNING: no op of the log meets the conditions of " + limits + ", so that no request met them: the op of the most requests is \"" + op + "\" (" + count + ")\n"
	}
	for log, want := range map[string]string{
		line("acme", "POST /pay") + line("acme", "POST /x"):                                 noTenant + noOp("login (/login)", "POST /pay", "1 request"),
		line("acme", "POST /pay") + line("Acme", "GET /login"):                              strings.NewReplacer("POST", "GET", "2 requests", "1 request").Replace(login),
		line("Acme", "GET /login") + line("acme", "POST /login") + line("b", "POST /login"): login + noOp("pay (POST /pay)", "POST /login", "2 requests"),
		line("-", "GET /x") + line("acme", "GET /x"):                                        noTenant + noOp("login (/login), pay (POST /pay)", "GET /x", "2 requests"),
	} {
		path := filepath.Join(t.TempDir(), "log")
		if err := os.WriteFile(path, []byte(log), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, code := command("replay", "--limits", limits, "--tenant", "{user}", path)
		if warnings, _, _ := strings.Cut(out, strconv.Itoa(strings.Count(log, "\n"))+" requests: "); code != exitOK || warnings != want {
			t.Errorf("%s: exit %d: %s%s, want %s", log, code, out, errs, want)
		}
	}
}

// TestReplayPlans: replay does not warn of what limits of a plan need that no request has.
func TestReplayPlans(t *testing.T) {
	limits := writeLimits(t, `
version: 1
default_plan: free
plans:
  free: [{id: a, by: [tenant], rate: 5/s}]
  gold: [{id: user, by: [tenant, user], rate: 5/s, missing: share}, {id: region, by: [tenant, region], rate: 5/s}]
tenants: {big: {plan: gold}, small: {}}
`)
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("192.0.2.1 - small [01/Mar/2026:10:00:05 +0000] \"GET /a HTTP/1.1\" 200 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for tenant, warned := range map[string]bool{"{user}": false, "big": true} {
		out, errs, code := command("replay", "--limits", limits, "--tenant", tenant, path)
		if code != exitOK || strings.Contains(out, "no request has user, so that") != warned || strings.Contains(out, "no request has region") != warned {
			t.Errorf("%s: exit %d: %s%s", tenant, code, out, errs)
		}
	}
}

// TestReplayUndeclared: replay warns of values that the limits file does not declare.
func TestReplayUndeclared(t *testing.T) {
	limits := writeLimits(t, "version: 1\ndefault_plan: p\ndimensions: {region: {values: [eu, us]}}\nplans: {p: [{id: a, by: [tenant, region], rate: 5/s}]}\n")
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("192.0.2.1 - - [01/Mar/2026:10:00:05 +0000] \"GET /a HTTP/1.1\" 200 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const want = "WARNING: 1 of 1 requests have a value of region that the limits file does not declare, which counts as a missing one\n"
	if out, errs, code := command("replay", "--limits", limits, "--dim", "region=EU", path); code != exitOK || !strings.Contains(out, want) {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if out, errs, code := command("replay", "--limits", limits, "--dim", "region=eu", path); code != exitOK || strings.Contains(out, "declare") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	out, _, _ := command("limits", "explain", limits, "t", "-", "-", "1", "DIM", "region", "EU")
	if !strings.Contains(out, `no declared region: "EU" is none of eu, us; did you mean eu?`) {
		t.Errorf("explain: %s", out)
	}
}
