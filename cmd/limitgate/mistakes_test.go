package main

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestMistakes: each mistake of a user gets an error that says what is wrong and what would be
// right.
func TestMistakes(t *testing.T) {
	const sample = "../../examples/limits.yaml"
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	page, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = page.Close() }()
	go func() {
		for c, err := page.Accept(); err == nil; c, err = page.Accept() {
			_, _ = io.WriteString(c, "<!DOCTYPE HTML>\n")
			_ = c.Close()
		}
	}()
	folder := t.TempDir()
	noPlan := filepath.Join(folder, "no_plan.yaml")
	if err := os.WriteFile(noPlan, []byte("version: 1\ndefault_plan: gold\nplans: {free: [], partner: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("t", 300)
	for _, row := range []struct {
		args []string
		want string
	}{
		{
			[]string{"serve", "--listen", taken.Addr().String(), "--admin", ""},
			"bind: address already in use (another process listens there: end it, or set another address by --listen)",
		},
		{
			[]string{"serve", "--listen", "127.0.0.1:0", "--admin", taken.Addr().String()},
			"bind: address already in use (another process listens there: end it, or set another address by --admin)",
		},
		{[]string{"serve", "--listen", "192.0.2.1:0", "--unsafe-open", "--admin", ""}, "(this host does not have that address: set another one by --listen)"},
		{[]string{"serve", "--limits", noPlan}, `no_plan.yaml:2: default_plan: there is no plan "gold": the plans are free, partner`},
		{[]string{"serve", "--limits", "nope.yaml"}, `read limits: there is no file "nope.yaml": --limits FILE`},
		{[]string{"serve", "--limits", filepath.Join(folder, "no_plans.yml")}, `no_plans.yml" for --limits; did you mean "` + noPlan + "\"?\n"},
		{[]string{"serve", "--admin=", "--listen=127.0.0.1:0", "--emf=file:nope/x"}, `open metrics file: there is no folder "nope" for "nope/x"`},
		{[]string{"serve", "--admin=", "--listen=127.0.0.1:0", "--limits", "dynamodb://limits", "--updates", "arn:aws:sns:eu-central-1:1:t", "--limits-snapshot", folder}, "write limits snapshot: \"" + folder + "\" is a folder: name a file\n"},
		{[]string{"serve", "--admin=", "--listen=127.0.0.1:0", "--limits", "dynamodb://limits", "--updates", "arn:aws:sns:eu-central-1:1:t", "--limits-snapshot", "nope/x"}, `write limits snapshot: there is no folder "nope" for "nope/x"`},
		{[]string{"serve", "--limits", folder}, "is a folder: name a file; a folder of Envoy's limits is for limitgate serve --rls-config"},
		{[]string{"serve", "--limits", "s3://bucket/key"}, `"s3://..." is no file; a table is written dynamodb://TABLE`},
		{[]string{"check", "--addr", "127.0.0.1:1", "acme", "-", "-"}, "(is limitgate serve running at 127.0.0.1:1?)"},
		{[]string{"check", "--addr", taken.Addr().String(), "--timeout", "100ms", "acme", "-", "-"}, " takes connections and does not answer in time: is that the --listen address of a limitgate?)"},
		{[]string{"check", "--addr", page.Addr().String(), "acme", "-", "-"}, " does not speak the protocol of Redis: name the --listen address of a limitgate)"},
		{[]string{"health", "--addr", page.Addr().String()}, page.Addr().String() + " does not answer HTTP: name the --admin address of a limitgate"},
		{[]string{"drill", "fail-open", "--run", "--redis", page.Addr().String()}, "find masters by " + page.Addr().String() + ": it is no Redis, it answers HTTP: name the port of a Redis"},
		{[]string{"check", long, "-", "-"}, "...': it has 300 bytes, at most 256"},
		{[]string{"check", "acme", strings.Repeat("o", 1025), "-"}, "...': it has 1025 bytes, at most 1024"},
		{[]string{"check", "acme", "-", "203.0.113.7:443"}, "invalid ip '203.0.113.7:443': it is an address with a port: leave out the port"},
		{[]string{"check", "acme", "-", "[2001:db8::1]:443"}, "leave out the port"},
		{[]string{"check", "acme", "-", "203.0.113.0/24"}, "invalid ip '203.0.113.0/24': it is a network: an address of it is needed"},
		{[]string{"check", "acme", "-", "203.0.113.7, 10.0.0.1"}, "it is a list: one address is needed, that of the client"},
		{[]string{"check", "acme", "-", "localhost"}, "invalid ip 'localhost': it is not an IPv4 or IPv6 address"},
		{[]string{"check", "acme", "", "-"}, "invalid op '': it is empty, - stands for none"},
		{[]string{"check", "acme", "-", "-", "1", "user", "u1"}, "; did you mean DIM user u1?"},
		{[]string{"check", "acme", "-", "-", "1", "ip", "192.0.2.1"}, "invalid option 'ip': the options here are DIM name value\n"},
		{[]string{"check", "acme", "-", "-", "1", "DIM", "ip", "u1"}, "invalid dimension name 'ip': tenant, op and ip stand in front, without DIM"},
		{[]string{"check", "acme", "-", "-", "1", "DIM", "user=u1", "x"}, "invalid dimension name 'user=u1': a blank stands between name and value: DIM user u1"},
		{[]string{"check", "limits.yaml", "acme", "-", "-"}, "a running limitgate is asked here; for a file: limitgate limits explain FILE TENANT OP IP"},
		{[]string{"explain", sample, "acme", "-", "-"}, "a running limitgate is asked here; for a file: limitgate limits explain FILE TENANT OP IP"},
		{[]string{"check", "acme", "-", "-", "-1"}, "cost must be an integer between 1 and 2147483647"},
		{[]string{"check", "acme", "-", "nope", "0"}, "the order is tenant op ip\n"},
		{[]string{"check", "acme", "-", "-", "0"}, "cost must be an integer between 1 and 2147483647; --peek takes nothing"},
		{[]string{"check", "acme", "-", "-", "--jsn"}, "unknown flag --jsn; did you mean --json?; limitgate check --help lists the flags"},
		{[]string{"check", "acme", "-", "-", "--addr", "http://127.0.0.1:6380"}, `--addr "http://..." is no address: write HOST:PORT, for example 127.0.0.1:6380`},
		{[]string{"serve", "--limits", "dynamodb://limits", "--updates", "arn:aws:sns:foo"}, `"arn:aws:sns:foo" is neither the ARN of an SNS topic nor the URL of an SQS queue`},
		{[]string{"serve", "--limits", "arn:aws:dynamodb:eu-central-1:123456789012:table/limits"}, `a table is written dynamodb://limits`},
		{[]string{"--limits", "saas.yaml", "serve"}, `a command is missing in front of "--limits"; did you mean limitgate serve --limits saas.yaml?`},
		{[]string{"--limits=saas.yaml", "doctor", "--x"}, `a command is missing in front of "--limits=saas.yaml"; did you mean limitgate doctor --limits=saas.yaml --x?`},
		{[]string{"--limits", "saas.yaml"}, `a command is missing in front of "--limits"; did you mean limitgate serve --limits saas.yaml?`},
		{[]string{"--redis", "redis://u:pw@h:1", "--limits", "dynamodb://limits"}, "did you mean limitgate serve --redis redis... --limits dynamodb://limits?"},
		{[]string{"-limits=saas.yaml"}, "did you mean limitgate serve -limits=saas.yaml?"},
		{[]string{"start"}, `there is no command "start"; did you mean serve?`},
		{[]string{"CHECK", "acme"}, `there is no command "CHECK"; did you mean check?`},
		{[]string{"reload"}, `there is no command "reload"; a running limitgate loads its limits again on RL.CONFIG RELOAD by a Redis client, or on SIGHUP`},
		{[]string{"check", "acme", "-", "[::1]"}, "invalid ip '[::1]': an address has no brackets"},
		{[]string{"check", "acme", "-", "-", "--timeout", "5"}, `check: flag --timeout: "5" is not a duration; write it with a unit, for example 5s; limitgate check --help lists the flags`},
		{[]string{"check", "acme", "-", "-", "--timeout", "for flag -nope: "}, `flag --timeout: "for flag -nope: " is not a duration; write it with a unit, for example 5s`},
		{[]string{"check", "acme", "GET", "/x", "203.0.113.7"}, `invalid ip '/x': it is not an IPv4 or IPv6 address; quote an op that has a space: "GET /x"`},
		{[]string{"check", "acme", "-", "-", "--port", "6380"}, "unknown flag --port; did you mean --addr?; limitgate"},
		{[]string{"check", "acme", "-", "-", "-password", "x"}, "unknown flag --password; did you mean --password-file?; limitgate"},
		{[]string{"check", "acme", "-", "-", "--dim", "user=ann"}, "unknown flag --dim; write DIM NAME VALUE behind the ip"},
		{[]string{"check", "acme", "-", "-", "--cost", "3"}, "unknown flag --cost; the cost stands behind the ip, without a name; limitgate"},
		{[]string{"serve", "--listen", "127.0.0.1:7399", "--admin", "127.0.0.1:7399"}, "flag --listen and flag --admin have the same port 7399 (127.0.0.1:7399): set another port by one of them"},
		{[]string{"serve", "--port", "6380"}, "flag --port: unknown flag; did you mean --listen=127.0.0.1:6380?"},
		{[]string{"serve", "-password", "x"}, "flag --password: unknown flag; did you mean --redis-password-file?"},
		{[]string{"serve", "limits.yaml"}, `"limits.yaml" is not a flag; write --limits in front of it; limitgate serve --help lists them`},
		{[]string{"serve", "dynamodb://limits"}, "write --limits in front of it"},
		{[]string{"check", "acme", "-", "-", "--json=maybe"}, "flag --json takes no value; write the flag alone, or leave it out"},
		{[]string{"chek", "acme"}, "there is no command \"chek\"; did you mean check?"},
		{[]string{"explain", "acme"}, `the op and ip are missing behind the tenant: for example acme "GET /x" 203.0.113.7`},
		{[]string{"check", "acme", "-", "-", "--tls", "--tls-cert", "x"}, "a certificate needs its key: set --tls-key"},
	} {
		if _, errs, code := command(row.args...); code == exitOK || !strings.Contains(errs, row.want) {
			t.Errorf("%.100s: exit %d, without %q:\n%s", row.args, code, row.want, errs)
		}
	}
}

// TestFlagMistakes: a flag without its value, or in the place of an argument, is named, and an argument in the form of one.
func TestFlagMistakes(t *testing.T) {
	const sample = "../../examples/limits.yaml"
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "--tenant", "acme", "--op", "GET /x"}, "unknown flag --tenant; tenant, op and ip are arguments, in this order and without flags; limitgate"},
		{[]string{"check", "acme", "203.0.113.7"}, "the op, or - for none, is missing in front of the ip 203.0.113.7: for example acme"},
		{[]string{"check", "acme", "GET /", "203.0.113.7", "cost=5"}, "invalid option 'cost=5': the cost stands behind the ip, without a name: 5"},
		{[]string{"limits", "push", "--yes", "--actor", "--removes", sample, "dynamodb://limits"}, "flag --actor: the value is missing; write --actor NAME; limitgate"},
		{[]string{"limits", "push", "--actor", "--yes", sample, "dynamodb://limits"}, "flag --actor: the value is missing; write --actor NAME"},
		{[]string{"limits", "push", sample, "dynamodb://limits", "--actor", "--yes=true"}, "flag --actor: the value is missing"},
		{[]string{"replay", "--limits", "--tenant", "acme", sample}, "flag --limits: the value is missing; write --limits FILE"},
		{[]string{"replay", "--limits", sample, "--compare", "--tenant", "{host}", "x.log"}, "flag --compare: the value is missing; write --compare FILE"},
		{[]string{"check", "acme", "-", "-", "--addr", "--help"}, "flag --addr: the value is missing"},
		{[]string{"check", "acme", "-", "-", "--addr", "-h"}, "flag --addr: the value is missing"},
		{[]string{"replay", "--5", "x.log"}, "replay: unknown flag --5; limitgate replay --help"},
	} {
		if _, errs, code := command(row.args...); code == exitOK || !strings.Contains(errs, row.want) {
			t.Errorf("%.100s: exit %d, without %q:\n%s", row.args, code, row.want, errs)
		}
	}
}

// TestUsageMistakes: arguments that are wrong end a command with 64.
func TestUsageMistakes(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"check --addr localhost acme - -", `check: --addr "localhost" has no port: write HOST:PORT, for example 127.0.0.1:6380`},
		{"check --addr 6380 acme - -", `check: --addr "6380" is a port without its host: write HOST:PORT, for example 127.0.0.1:6380`},
		{"check --addr 127.0.0.1: acme - -", `has no port`},
		{"check --addr 127.0.0.1:http acme - -", `has the port "http", which is no number from 0 to 65535`},
		{"check --addr= acme - -", "check: --addr is empty: write HOST:PORT"},
		{"top --addr=", "top: --addr is empty: write HOST:PORT"},
		{"stats --addr=", "stats: --addr is empty: write HOST:PORT"},
		{"check --user bob acme - -", "a user needs a password: set --password-file"},
		{"check --tls-ca x acme - -", "certificates are for TLS: set --tls"},
		{"check --timeout 0 acme - -", "--timeout is 0s: want 1ms to 1h"},
		{"check --timeout -1s acme - -", "--timeout is -1s: want 1ms to 1h"},
		{"top --every 1ms", "--every is 1ms: want 10ms to 24h"},
		{"top --every -1s", "--every is -1s: want 10ms to 24h"},
		{"stats foo", `stats: "foo" is not a flag`},
		{"stats --every 0s", "--every is 0s: want 10ms to 24h"},
		{"health foo", `health: "foo" is not a flag: write --addr in front of an address`},
		{"health --addr foo", `health: --addr "foo" has no port: write HOST:PORT, for example 127.0.0.1:9180`},
		{"health --timeout 0s", "health: --timeout is 0s: want 1ms to 1h"},
		{"health --admin 127.0.0.1:9180", "did you mean --addr?"},
		{"version foo", `version: "foo" is not a flag`},
		{"serve --limits dynamodb://", "the name of the table is missing: write dynamodb://TABLE"},
		{"serve --limits dynamodb://limits", "limits of a table need a subscription to changes: set --updates to the ARN of a topic, for example arn:aws:sns:eu-central-1:123456789012:limits, or"},
		{"serve --rls 127.0.0.1:0 --listen 127.0.0.1:0 --admin=", "the rate limit service needs limits"},
		{"serve --listen 127.0.0.1:7399 --admin 127.0.0.1:7399", "flag --listen and flag --admin have the same port 7399 (127.0.0.1:7399): set another port by one of them"},
		{"serve --rls 127.0.0.1:7399 --rls-config x --rls-http 127.0.0.1:7399", "flag --rls and flag --rls-http have the same port 7399"},
	} {
		if _, errs, code := command(strings.Fields(row.args)...); code != exitUsage || !strings.Contains(errs, row.want) {
			t.Errorf("%s: exit %d, without %q:\n%s", row.args, code, row.want, errs)
		}
	}
}

// TestEnvoyMistakes: errors of addresses name the variables of envoyproxy/ratelimit that gave them.
func TestEnvoyMistakes(t *testing.T) {
	const own = "--listen=127.0.0.1:0 --admin=127.0.0.1:0"
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	socket := filepath.Join(t.TempDir(), "s")
	held, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, row := range []struct {
		environ, args, want string
		code                int
	}{
		{"CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=http://x", own, "env CONFIG_GRPC_XDS_SERVER_URL: it is a URL and not host:port; write for example localhost:18000, and for TLS set CONFIG_GRPC_XDS_SERVER_USE_TLS=true\n", exitUsage},
		{"CONFIG_TYPE=GRPC_XDS_SOTW CONFIG_GRPC_XDS_SERVER_URL=x", own, "env CONFIG_GRPC_XDS_SERVER_URL: it is not host:port; write for example localhost:18000\n", exitUsage},
		{"GRPC_PORT=8080", own, "env GRPC_PORT (LIMITGATE_RLS) and env PORT (LIMITGATE_RLS_HTTP) have the same port 8080 (127.0.0.1:8080): set another port by one of them", exitUsage},
		{"DEBUG_PORT=8081", own, "env GRPC_PORT (LIMITGATE_RLS) and env DEBUG_PORT (LIMITGATE_RLS_DEBUG) have the same port 8081 (127.0.0.1:8081)", exitUsage},
		{"PORT=9180", "--listen=127.0.0.1:0", "the default of --admin and env PORT (LIMITGATE_RLS_HTTP) have the same port 9180", exitUsage},
		{"GRPC_PORT=" + port, own, "(another process listens there: end it, or set another address by GRPC_PORT)", exitError},
		{"GRPC_PORT=0 DEBUG_PORT=0 PORT=" + port, own, "or set another address by PORT)", exitError},
		{"GRPC_PORT=0 PORT=0 DEBUG_PORT=" + port, own, "or set another address by DEBUG_PORT)", exitError},
		{"GRPC_PORT=0 USE_PROMETHEUS=true PROMETHEUS_ADDR=127.0.0.1:" + port, "--listen=127.0.0.1:0", "or set another address by PROMETHEUS_ADDR)", exitError},
		{"GRPC_UDS=" + socket, own, "end it, or set another path by GRPC_UDS)", exitError},
		{"LIMITGATE_RLS=" + taken.Addr().String(), own, "or set another address by LIMITGATE_RLS)", exitError},
		{"LIMITGATE_LISTEN=" + taken.Addr().String(), "--admin=127.0.0.1:0", "or set another address by LIMITGATE_LISTEN)", exitError},
	} {
		var errs strings.Builder
		environ := append(strings.Fields(row.environ), "HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "RUNTIME_ROOT="+shopLimits, "RUNTIME_APPDIRECTORY=.")
		env := &environment{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &errs, environ: environ}
		if code := execute(t.Context(), env, append([]string{"envoy"}, strings.Fields(row.args)...)); code != row.code || !strings.Contains(errs.String(), row.want) {
			t.Errorf("%s %s: exit %d, without %q:\n%s", row.environ, row.args, code, row.want, errs.String())
		}
	}
}

// TestPlanMistakes does the same for the planner.
func TestPlanMistakes(t *testing.T) {
	const sample = "../../examples/limits.yaml"
	noPlan := filepath.Join(t.TempDir(), "no_plan.yaml")
	if err := os.WriteFile(noPlan, []byte("version: 1\ndefault_plan: gold\nplans: {free: [], partner: []}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	other := written(t, "other.json", "{\n  \"version\": 1\n}\n")
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "1M"}, `"1M" is not a flag: the load is given by --rps`},
		{[]string{"plan", "--rps", "1 million"}, `"1 million" is not a number: write for example 50000, 50k or 1.5M`},
		{[]string{"plan", "--checks", "50k"}, "plan: unknown flag --checks; did you mean --rps?; limitgate plan --help"},
		{[]string{"plan", "--rps", "-5"}, "plan: --rps is -5: want a number above 0; "},
		{[]string{"plan", "--rps", "99999999999999999999"}, "plan: --rps is 99999999999999999999, which is too large: want at most 1000000000000000; "},
		{[]string{"plan", "--rps", strings.Repeat("9", 400)}, ", which is too large: want at most 1000000000000000; "},
		{[]string{"plan", "--rps", "50k", "--values", "-1"}, "--values is -1: want 0 or more; "},
		{[]string{"plan", "--rps", "50k", "--replicas", "-1"}, "--replicas is -1: want 0 to 5; "},
		{[]string{"plan", "--rps", "50k", "--utilisation", "60%"}, `flag --utilisation: "60%" is a percentage: as a number it is 0.6; `},
		{[]string{"plan", "--rps", "50k", "--local-share", "12.5%"}, `flag --local-share: "12.5%" is a percentage: as a number it is 0.125; `},
		{[]string{"plan", "--rps", "50k", "--peak-rps", "15k"}, "--peak-rps is below --rps: the peak is at least the mean"},
		{[]string{"plan", "--rps", "50k", "--local-share", "80"}, "--local-share is 80: want 0 to 1"},
		{[]string{"plan", "--rps", "50k", "--replicas", "1.5"}, "--replicas is 1.5: want a whole number"},
		{[]string{"plan", "--rps", "50k", "--edge", "api-gateway-rst"}, "did you mean api-gateway-rest?"},
		{[]string{"plan", "--rps", "50k", "--cpu-per-call", "0s"}, "--cpu-per-call must be above zero"},
		{[]string{"plan", "--rps", "50k", "--cpu-per-call", "7"}, "for example 7us"},
		{[]string{"plan", "--rps", "50k", "--cpu-per-call", "7us", "--measured", "x"}, "--cpu-per-call and --measured give the same number"},
		{[]string{"plan", "--rps", "50k", "--node", "r7g.large"}, "there is no price of node r7g.large with valkey: known are cache.c7gn.large, "},
		{[]string{"plan", "--rps", "50k", "--prices", sample}, "limits.yaml: parse prices: this is no JSON: want a file as limitgate plan --print-prices prints, see docs/capacity.md"},
		{[]string{"plan", "--rps", "50k", "--measured", sample}, "limits.yaml: parse measurement: this is no JSON: want a file that limitgate doctor --measure FILE writes, see docs/capacity.md"},
		{[]string{"plan", "--rps", "50k", "--measured", other}, `other.json: parse measurement: line 2: there is no field "version", the fields are date, store, tls, calls_per_script, points: want a file that limitgate doctor`},
		{[]string{"plan", "--rps", "50k", "--prices", other}, `other.json: parse prices: line 2: there is no field "version", the fields are date, region, currency, source, node_types, nodes, edges, proxy, transfer, emf: want a file as`},
		{[]string{"plan", "--rps", "50k", "--limits", noPlan}, `no_plan.yaml:2: default_plan: there is no plan "gold"`},
		{[]string{"plan", "--rate", "50k"}, "did you mean --rps?"},
		{[]string{"plan", "--qps", "50k"}, "did you mean --rps?"},
	} {
		if _, errs, code := command(row.args...); code == exitOK || !strings.Contains(errs, row.want) {
			t.Errorf("%.100s: exit %d, without %q:\n%s", row.args, code, row.want, errs)
		}
	}
}

// TestLintSamples: lint has no warning of the samples, and says what a quota needs of Redis.
func TestLintSamples(t *testing.T) {
	out, errs, code := command("limits", "lint", "../../examples/limits.yaml")
	if code != exitOK || errs != "" || !strings.Contains(out, "a Redis without AOF forgets it") {
		t.Errorf("exit %d, warnings %q:\n%s", code, errs, out)
	}
	if _, errs, _ := command("limits", "lint", "../../examples/replay-budget.yaml"); errs != "" {
		t.Errorf("warnings %q", errs)
	}
}

// TestSuggestUnreadable: the lines of a log that cannot be read are reported.
func TestSuggestUnreadable(t *testing.T) {
	log, err := os.ReadFile("../../examples/access.log")
	if err != nil {
		t.Fatal(err)
	}
	mixed := filepath.Join(t.TempDir(), "mixed.log")
	lines := strings.SplitAfter(string(log), "\n")
	if err := os.WriteFile(mixed, []byte(strings.Join(lines[:5], "")+strings.Repeat("1\n", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command("limits", "suggest", mixed)
	if code != exitOK || !strings.Contains(out, "# Requests: 5,") || !strings.HasPrefix(errs, "30 lines were left out, whose format cannot be read:\n") {
		t.Errorf("exit %d: %s%s", code, errs, out)
	}
}

// TestFlagsAnywhere: flags may stand before and behind arguments, and behind -- is none.
func TestFlagsAnywhere(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "acme", "-", "-", "--addr", "127.0.0.1:1"}, "127.0.0.1:1"},
		{[]string{"check", "--addr", "127.0.0.1:1", "acme", "-", "-", "--peek"}, "127.0.0.1:1"},
		{[]string{"check", "--addr", "127.0.0.1:1", "--", "acme", "-o", "-"}, "127.0.0.1:1"},
		{[]string{"check", "--addr", "127.0.0.1:1", "acme", "-o", "-"}, "unknown flag --o"},
		{[]string{"check", "--addr", "127.0.0.1:1", "--", "acme", "--peek", "x"}, "invalid ip 'x'"},
		{[]string{"check", "acme", "-", "-", "-5"}, "cost must be an integer"},
	} {
		if _, errs, code := command(row.args...); code == exitOK || !strings.Contains(errs, row.want) {
			t.Errorf("%v: exit %d, without %q: %s", row.args, code, row.want, errs)
		}
	}
}

// TestMistakesOfRedis: advice about a Redis names the settings as they were named.
func TestMistakesOfRedis(t *testing.T) {
	addr := redistest.Start(t).Addr
	for _, row := range []struct{ environ, args, want string }{
		{"REDIS_SOCKET_TYPE=tcp REDIS_AUTH=secret REDIS_URL=" + addr, "envoy", "AUTH with a user: leave out REDIS_AUTH, or give that user a password there"},
		{"REDIS_SOCKET_TYPE=tcp REDIS_TLS=true REDIS_URL=" + addr, "envoy", "or leave out REDIS_TLS"},
		{"LIMITGATE_REDIS_TLS=true", "serve --redis " + addr, "or leave out LIMITGATE_REDIS_TLS"},
		{"", "serve --redis rediss://" + addr, "or write redis:// in place of rediss://"},
		{"", "serve --redis-tls --redis " + addr, "or leave out --redis-tls"},
	} {
		var errs strings.Builder
		environ := append(strings.Fields(row.environ), "HOST=127.0.0.1", "GRPC_HOST=127.0.0.1", "GRPC_PORT=0", "PORT=0", "DEBUG_PORT=0", "RUNTIME_ROOT="+shopLimits, "RUNTIME_APPDIRECTORY=.")
		env := &environment{stdin: strings.NewReader(""), stdout: io.Discard, stderr: &errs, environ: environ}
		args := append(strings.Fields(row.args), "--listen=127.0.0.1:0", "--admin=127.0.0.1:0")
		if code := execute(t.Context(), env, args); code != exitError || !strings.Contains(errs.String(), row.want) {
			t.Errorf("%s %s: exit %d, without %q:\n%s", row.environ, row.args, code, row.want, errs.String())
		}
	}
	if out, errs, code := command("doctor", "--json", "--redis", "rediss://"+addr); code != exitError || !strings.Contains(out, "or write redis:// in place of rediss://") {
		t.Errorf("doctor: exit %d:\n%s%s", code, out, errs)
	}
}

// TestMistakeRedis: check says so where its address is that of a Redis.
func TestMistakeRedis(t *testing.T) {
	addr := redistest.Start(t).Addr
	const want = " is a Redis: name the address of a limitgate that serves it, started by limitgate serve --redis "
	if _, errs, code := command("check", "acme", "-", "-", "--addr", addr); code != exitError || !strings.Contains(errs, addr+want+addr+")") {
		t.Errorf("exit %d: %s", code, errs)
	}
	if _, errs, code := command("health", "--addr", addr); code != exitError || errs != "limitgate: health: "+addr+" does not answer HTTP: name the --admin address of a limitgate\n" {
		t.Errorf("health: exit %d: %s", code, errs)
	}
}

// TestCertificateWithoutHosts: no name of a server helps with a certificate that names no host.
func TestCertificateWithoutHosts(t *testing.T) {
	for _, row := range []struct {
		hosts []string
		want  string
	}{
		{nil, "(its certificate names no host, as TLS does not use the common name any more: make one with subjectAltName=DNS:HOST, or IP:ADDRESS)"},
		{[]string{"other"}, "(name a host of the certificate by --tls-server-name other, and the file of its authority by --tls-ca unless this machine trusts it)"},
	} {
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: "localhost"}, DNSNames: row.hosts}
		if got := explainDial("localhost:1", x509.HostnameError{Certificate: cert, Host: "localhost"}); !strings.HasSuffix(got.Error(), row.want) {
			t.Errorf("%v: %s", row.hosts, got)
		}
	}
}
