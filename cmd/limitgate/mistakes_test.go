package main

import (
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
		{[]string{"limits", "lint", noPlan}, `no_plan.yaml:2: default_plan: there is no plan "gold": the plans are free, partner`},
		{[]string{"limits", "lint", "nope.yaml"}, `there is no file "nope.yaml": limitgate limits lint FILE`},
		{[]string{"serve", "--limits", "nope.yaml"}, `read limits: there is no file "nope.yaml": --limits FILE`},
		{[]string{"serve", "--admin=", "--listen=127.0.0.1:0", "--emf=file:nope/x"}, `open metrics file: there is no folder "nope" for "nope/x"`},
		{[]string{"serve", "--limits", folder}, "is a folder: name a file, or a folder of Envoy's limits by --rls-config"},
		{[]string{"serve", "--limits", "s3://bucket/key"}, `"s3://..." is no file; a table is written dynamodb://TABLE`},
		{[]string{"replay", "--limits", sample, "nope.log"}, `open access log: there is no file "nope.log"`},
		{[]string{"limits", "import", "envoy", "nope"}, `there is no folder "nope"`},
		{[]string{"limits", "diff", "dynamodb://limits", sample}, "the table is the second one: limitgate limits diff ../../examples/limits.yaml dynamodb://limits"},
		{[]string{"limits", "diff", sample, "dynamo://limits"}, "is neither a file nor a table: a table is named dynamodb://TABLE"},
		{[]string{"replay", "--limits", sample, "--tenant", "query:user", os.DevNull}, "query:user is a field of the log, and fields are written in braces: want {query:user}"},
		{[]string{"replay", "--limits", sample, os.DevNull}, "read access log: it is empty"},
		{[]string{"limits", "diff", sample}, "two files, or a file and a table, are needed: limitgate limits diff old.yaml new.yaml"},
		{[]string{"check", "--addr", "127.0.0.1:1", "acme", "-", "-"}, "(is limitgate serve running at 127.0.0.1:1?)"},
		{[]string{"check", long, "-", "-"}, "...': it has 300 bytes, at most 256"},
		{[]string{"check", "acme", strings.Repeat("o", 1025), "-"}, "...': it has 1025 bytes, at most 1024"},
		{[]string{"check", "acme", "-", "203.0.113.7:443"}, "invalid ip '203.0.113.7:443': it is an address with a port: leave out the port"},
		{[]string{"check", "acme", "-", "[2001:db8::1]:443"}, "leave out the port"},
		{[]string{"check", "acme", "-", "203.0.113.0/24"}, "invalid ip '203.0.113.0/24': it is a network: an address of it is needed"},
		{[]string{"check", "acme", "-", "203.0.113.7, 10.0.0.1"}, "it is a list: one address is needed, that of the client"},
		{[]string{"check", "acme", "-", "localhost"}, "invalid ip 'localhost': it is not an IPv4 or IPv6 address"},
		{[]string{"check", "acme", "", "-"}, "invalid op '': it is empty, - stands for none"},
		{[]string{"check", "acme", "-", "-", "1", "user", "u1"}, "invalid option 'user': the options here are DIM name value"},
		{[]string{"check", "acme", "-", "-", "1", "DIM", "ip", "u1"}, "invalid dimension name 'ip': tenant, op and ip stand in front, without DIM"},
		{[]string{"check", "acme", "-", "-", "1", "DIM", "user=u1", "x"}, "invalid dimension name 'user=u1': a blank stands between name and value: DIM user u1"},
		{[]string{"check", "limits.yaml", "acme", "-", "-"}, "a running limitgate is asked here; for a file: limitgate limits explain FILE TENANT OP IP"},
		{[]string{"explain", sample, "acme", "-", "-"}, "a running limitgate is asked here; for a file: limitgate limits explain FILE TENANT OP IP"},
		{[]string{"limits", "--addr", "127.0.0.1:1", sample}, "a running limitgate is asked here; for a file: limitgate limits lint FILE"},
		{[]string{"limits", "explain", "acme", "-", "-", "1"}, `there is no file "acme": limitgate limits explain FILE TENANT OP IP`},
		{[]string{"check", "acme", "-", "-", "-1"}, "cost must be an integer between 1 and 2147483647"},
		{[]string{"check", "acme", "-", "-", "--jsn"}, "flag provided but not defined: -jsn; did you mean --json?; limitgate check --help lists the flags"},
		{[]string{"check", "acme", "-", "-", "--addr", "http://127.0.0.1:6380"}, "(an address is HOST:PORT, for example 127.0.0.1:6380)"},
		{[]string{"check", "acme", "-", "-", "--addr", "127.0.0.1"}, "(an address is HOST:PORT, for example 127.0.0.1:6380)"},
		{[]string{"check", "acme", "-", "[::1]"}, "invalid ip '[::1]': an address has no brackets"},
		{[]string{"limits", "acme"}, "limitgate limits --addr ADDRESS asks a running limitgate"},
		{[]string{"check", "acme", "-", "-", "--timeout", "5"}, "parse error; write for example 5s or 200ms"},
		{[]string{"check", "acme", "-", "-", "--timeout", "for flag -nope: "}, "parse error; write for example 5s or 200ms"},
		{[]string{"doctor", "--backstop-total-rate", "x"}, "parse error; write a number, for example 100; limitgate doctor --help"},
		{[]string{"check", "acme", "GET", "/x", "203.0.113.7"}, `invalid ip '/x': it is not an IPv4 or IPv6 address; quote an op that has a space: "GET /x"`},
		{[]string{"check", "acme", "-", "-", "--port", "6380"}, "flag provided but not defined: -port; did you mean --addr?; limitgate"},
		{[]string{"check", "acme", "-", "-", "-password", "x"}, "flag provided but not defined: -password; did you mean --password-file?; limitgate"},
		{[]string{"doctor", "--host", "x"}, "did you mean --redis?"},
		{[]string{"check", "acme", "-", "-", "--dim", "user=ann"}, "flag provided but not defined: -dim; write DIM NAME VALUE behind the ip"},
		{[]string{"controlplane", "--table", "limits", "--topic", "limits", "--leases", "leases"}, `--topic "limits" is not the ARN of an SNS topic: arn:aws:sns:REGION:ACCOUNT:limits`},
		{[]string{"controlplane", "--table", "dynamodb://limits", "--topic", "arn:aws:sns:x:1:limits", "--leases", "leases"}, "--table is the name alone: limits"},
		{[]string{"serve", "--listen", "127.0.0.1:7399", "--admin", "127.0.0.1:7399"}, "--admin is 127.0.0.1:7399, as --listen is: set another port"},
		{[]string{"doctor", "--config", "x"}, "did you mean --limits?"},
		{[]string{"limits", "lint", "--config", "x", sample}, "flag provided but not defined: -config; limitgate limits lint --help lists the flags"},
		{[]string{"serve", "--port", "6380"}, "flag --port: unknown flag; did you mean --listen?"},
		{[]string{"serve", "-password", "x"}, "flag --password: unknown flag; did you mean --redis-password-file?"},
		{[]string{"doctor", "--redis", "127.0.0.1:1", "--redis", "127.0.0.1:2"}, "flag --redis: it is given twice; write one list with commas, --redis=HOST:PORT,..."},
		{[]string{"serve", "limits.yaml"}, `"limits.yaml" is not a flag; write --limits in front of it; limitgate serve --help lists them`},
		{[]string{"serve", "dynamodb://limits"}, "write --limits in front of it"},
		{[]string{"doctor", "127.0.0.1:6379"}, `"127.0.0.1:6379" is not a flag: name the nodes by --redis`},
		{[]string{"limits", "lint", "dynamodb://limits"}, "dynamodb://limits is a table, and a file is needed: limitgate limits pull dynamodb://limits > limits.yaml writes one"},
		{[]string{"limits", "lint", "dynamodb://"}, "the name of the table is missing: write dynamodb://TABLE"},
		{[]string{"limits", "lint", "dynamo://limits"}, "is no file; a table is written dynamodb://TABLE"},
		{[]string{"check", "acme", "-", "-", "--json=maybe"}, "write the flag alone, or leave it out"},
		{[]string{"bypass"}, "say key or token, such as limitgate bypass key --id 2026 bypass.pem bypass.json"},
		{[]string{"bypass", "token"}, "--key is needed: limitgate bypass token --key bypass.pem"},
		{[]string{"stats", "x"}, "it takes no arguments, and a time between two lines above 0; limitgate stats --help says more"},
		{[]string{"stats", "--every", "5"}, "write for example 5s or 200ms"},
		{[]string{"stats", "--addr", "127.0.0.1:1"}, "(is limitgate serve running at 127.0.0.1:1?)"},
		{[]string{"suggest", "access.log"}, "there is no command \"suggest\"; did you mean limits suggest?"},
		{[]string{"chek", "acme"}, "there is no command \"chek\"; did you mean check?"},
		{[]string{"limits", "lnt", sample}, "there is no command \"lnt\"; did you mean lint?"},
		{[]string{"limits", "lint", "--strict", shopLimits}, "--strict has no effect on a folder of Envoy's limits: it belongs to a limits file"},
		{[]string{"limits", "explain", "--domain", "shop", sample, "acme", "-", "-"}, "--domain has no effect on a limits file: it belongs to a folder of Envoy's limits"},
		{[]string{"limits", "explain", shopLimits}, "descriptors are needed: limitgate limits explain " + shopLimits + " KEY=VALUE,KEY=VALUE"},
		{[]string{"limits", "explain", shopLimits, "tenant"}, `"tenant" is no entry: write KEY=VALUE`},
		{[]string{"limits", "explain", shopLimits, "--domain", "shp", "tenant=a"}, `there is no domain "shp", and so no limit for its requests; the domains are shop; did you mean shop?`},
		{[]string{"limits", "import", "envy", shopLimits}, `there is no import of "envy"; did you mean envoy?; there are nginx, kong, rules and envoy`},
		{[]string{"limits", "import", "nginx"}, "nginx, kong or rules, and a file, or envoy and a folder, are needed"},
		{[]string{"limits", "check"}, "did you mean lint?"},
		{[]string{"limits", "explain", sample, "acme"}, `tenant, op and ip are needed: limitgate limits explain limits.yaml acme "POST /v1/payments" 203.0.113.7`},
		{[]string{"explain", "acme"}, `tenant, op and ip are needed: for example acme "GET /x" 203.0.113.7`},
		{[]string{"replay"}, "are needed: limitgate replay --limits limits.yaml access.log.gz"},
		{[]string{"controlplane", "--table", "t", "--topic", "arn:aws:sns:x:1:t"}, "--leases is missing: limitgate controlplane --table limits"},
		{[]string{"controlplane", "--table"}, "flag needs an argument: -table; write --table NAME"},
		{[]string{"rollout", "start"}, "--gate is missing: limitgate rollout start --gate appconfig://"},
		{[]string{"rollout", "abort", "--gate", "appconfig://a/b/c", "x"}, "the last argument is the table, dynamodb://TABLE: limitgate rollout abort --gate appconfig://abc1234/def5678/ghi9012 dynamodb://limits"},
		{[]string{"rollout", "strat"}, `there is no command "strat" of rollout; did you mean start?`},
		{[]string{"aws-check"}, "--table is missing: limitgate aws-check --table limits"},
		{[]string{"cells", "foo"}, `there is no command "foo" of cells; say weight, drain, join or forget`},
		{[]string{"cells", "weight", "--cells", "cells"}, "an argument is missing: limitgate cells weight --cells cells eu-central-1 2"},
		{[]string{"drill", "foo"}, `there is no drill "foo"; there are failover, fail-open,`},
		{[]string{"check", "acme", "-", "-", "--tls", "--tls-cert", "x"}, "a certificate needs its key: set --tls-key"},
		{[]string{"bypass", "token", "--key", "k", "--id", "a", "--name", "n", "--rate", "1/s", "--for", "800000h"}, "--for is 800000h, which is too long: at most 8784h"},
	} {
		if _, errs, code := command(row.args...); code == exitOK || !strings.Contains(errs, row.want) {
			t.Errorf("%.100s: exit %d, without %q:\n%s", row.args, code, row.want, errs)
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
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", "1M"}, `"1M" is not a flag: the load is given by --rps`},
		{[]string{"plan", "--rps", "1 million"}, `"1 million" is not a number: write for example 50000, 50k or 1.5M`},
		{[]string{"plan", "--rps", "50k", "--peak-rps", "15k"}, "--peak-rps is below --rps: the peak is at least the mean"},
		{[]string{"plan", "--rps", "50k", "--local-share", "80"}, "--local-share is 80: want 0 to 1"},
		{[]string{"plan", "--rps", "50k", "--replicas", "1.5"}, "--replicas is 1.5: want a whole number"},
		{[]string{"plan", "--rps", "50k", "--edge", "api-gateway-rst"}, "did you mean api-gateway-rest?"},
		{[]string{"plan", "--rps", "50k", "--cpu-per-call", "7"}, "write for example 5s or 200ms"},
		{[]string{"plan", "--rps", "50k", "--cpu-per-call", "7us", "--measured", "x"}, "--cpu-per-call and --measured give the same number"},
		{[]string{"plan", "--rps", "50k", "--node", "r7g.large"}, "there is no price of node r7g.large with valkey: known are cache.c7gn.large, "},
		{[]string{"plan", "--rps", "50k", "--prices", sample}, "limits.yaml: parse prices: this is no JSON: want a file as --print-prices prints"},
		{[]string{"plan", "--rps", "50k", "--measured", sample}, "limits.yaml: parse measurement: this is no JSON: want a file as limitgate doctor --measure prints"},
		{[]string{"plan", "--rps", "50k", "--limits", noPlan}, `no_plan.yaml:2: default_plan: there is no plan "gold"`},
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

// TestFlagsAnywhere: flags may stand before and behind arguments, and behind -- is none.
func TestFlagsAnywhere(t *testing.T) {
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"check", "acme", "-", "-", "--addr", "127.0.0.1:1"}, "127.0.0.1:1"},
		{[]string{"check", "--addr", "127.0.0.1:1", "acme", "-", "-", "--peek"}, "127.0.0.1:1"},
		{[]string{"check", "--addr", "127.0.0.1:1", "--", "acme", "-o", "-"}, "127.0.0.1:1"},
		{[]string{"check", "--addr", "127.0.0.1:1", "acme", "-o", "-"}, "flag provided but not defined: -o"},
		{[]string{"check", "--addr", "127.0.0.1:1", "--", "acme", "--peek", "x"}, "invalid ip 'x'"},
		{[]string{"check", "acme", "-", "-", "-5"}, "cost must be an integer"},
	} {
		if _, errs, code := command(row.args...); code == exitOK || !strings.Contains(errs, row.want) {
			t.Errorf("%v: exit %d, without %q: %s", row.args, code, row.want, errs)
		}
	}
}

// TestMistakeRedis: check says so where its address is that of a Redis.
func TestMistakeRedis(t *testing.T) {
	addr := redistest.Start(t).Addr
	const want = " is a Redis: name the address of a limitgate that serves it, started by limitgate serve --redis "
	if _, errs, code := command("check", "acme", "-", "-", "--addr", addr); code != exitError || !strings.Contains(errs, addr+want+addr+")") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
