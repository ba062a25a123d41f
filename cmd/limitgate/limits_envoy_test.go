package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shopLimits = "../../examples/envoy/ratelimit/config"

// TestEnvoyLint: lint of a folder lists the mistakes of all files, and otherwise the limits.
func TestEnvoyLint(t *testing.T) {
	out, errs, code := command("limits", "lint", shopLimits)
	for _, want := range []string{"7 limits in 1 domain, 1 file\n", "route_login.remote_address   10 per minute    enforce  one for each remote_address  shop.yaml:16\n", "unlimited        -        none ", "shadow "} {
		if code != exitOK || errs != "" || !strings.Contains(out, want) {
			t.Errorf("exit %d, without %q: %s\n%s", code, want, errs, out)
		}
	}
	folder := t.TempDir()
	for name, content := range map[string]string{
		"a.yaml": "domain: a\ndescriptors:\n- key: x\n  rate_limt: {}\n- {key: y, rate_limit: {unit: day}}\n",
		"b.yaml": "domain: b\ndescriptors: [{key: x, sleep_on_throttle: 1}]\n",
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := folder + "/a.yaml:4: descriptors[0].rate_limt: unknown key; did you mean rate_limit?\n" +
		folder + "/a.yaml:5: descriptors[1].rate_limit.requests_per_unit: it is missing, and so 0: every request is over the limit (warning)\n" +
		folder + "/b.yaml:2: descriptors[0].sleep_on_throttle: unknown key; the keys are key, value, rate_limit, descriptors, shadow_mode, quota_mode, detailed_metric, value_to_metric, share_threshold, metadata\n"
	if out, errs, code := command("limits", "lint", folder); code != exitError || errs != want || out != "" {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	for _, args := range [][]string{{"limits", "import", "envoy", folder}, {"limits", "explain", folder, "x=1"}} {
		if out, errs, code := command(args...); code != exitError || !strings.Contains(errs, "a.yaml:4: ") || !strings.Contains(errs, "b.yaml:2: ") || out != "" {
			t.Errorf("%v: exit %d: %s\n%s", args, code, errs, out)
		}
	}
}

// TestEnvoyExtensions: lint and explain show what a file of extensions adds, and its mistakes.
func TestEnvoyExtensions(t *testing.T) {
	const file = "../../examples/envoy/ratelimit/extensions.yaml"
	out, errs, code := command("limits", "lint", "--rls-extensions", file, shopLimits)
	for _, want := range []string{"600 per minute, token_bucket, burst 1000, lease auto for 2s ", "10 per minute, fails closed; daily 100/day, calendar of Europe/Berlin ", "  50 per second  "} {
		if code != exitOK || errs != "" || !strings.Contains(out, want) {
			t.Errorf("exit %d, without %q: %s\n%s", code, want, errs, out)
		}
	}
	if out, errs, code := command("limits", "explain", "--rls-extensions", file, shopLimits, "tenant=acme"); code != exitOK || errs != "" || !strings.Contains(out, "lg:d:{shop%3Btenant:acme%3B%3Bt}") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	denied := filepath.Join(t.TempDir(), "denied.yaml")
	if err := os.WriteFile(denied, []byte("version: 1\ndomains: {shop: {on_denied: nothing, rules: {tenant: {on_denied: count}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code = command("limits", "lint", "--rls-extensions", denied, shopLimits)
	for _, want := range []string{"600 per minute, counts denied requests ", "50 per second, takes nothing of denied requests "} {
		if code != exitOK || errs != "" || !strings.Contains(out, want) {
			t.Errorf("exit %d, without %q: %s\n%s", code, want, errs, out)
		}
	}
	broken := filepath.Join(t.TempDir(), "x.yaml")
	if err := os.WriteFile(broken, []byte("version: 1\ndomains: {shop: {rules: {tenant: {burst: 5}}, on_eror: closed}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := command("limits", "lint", "--rls-extensions", broken, shopLimits); code != exitError || errs != "limitgate: "+broken+":2: domains.shop.on_eror: unknown key; did you mean on_error?\n" {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
}

// TestEnvoyExplain: explain names the rule of each descriptor and its counter, or why there is none.
func TestEnvoyExplain(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("sixteen bytes or more of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, errs, code := command("limits", "explain", shopLimits, "--privacy-ip-secret-file", secret, "route=login,remote_address=203.0.113.7", "tenant=globex", "remote_address=203.0.113.99", `tenant=a\,b\=c`, "route=checkout")
	for _, want := range []string{
		"domain shop, 5 descriptors\ncounted by route_login.remote_address, tenant_globex, tenant\n",
		"route_login by its value, shop.yaml:13; remote_address by its key, shop.yaml:16", " 60 s from 20", "lg:d:{shop%3Broute=login%3Bremote_address:TmOBjUNuvtON2qc1}\n",
		"*  tenant=globex ", "   remote_address=203.0.113.99 ", "lg:d:{shop%3Btenant:a,b=c}\n", `there are "login", "search"`,
	} {
		if code != exitOK || errs != "" || !strings.Contains(out, want) {
			t.Errorf("exit %d, without %q: %s\n%s", code, want, errs, out)
		}
	}
	if out, _, _ := command("limits", "explain", shopLimits, "remote_address=203.0.113.7"); !strings.Contains(out, "(example hash)\n") {
		t.Errorf("the hash of an address is that of no store:\n%s", out)
	}
}

// TestEnvoyReplaces: a limit that another one replaces does not count, and one of 0 denies.
func TestEnvoyReplaces(t *testing.T) {
	folder := t.TempDir()
	const content = `
domain: d
descriptors:
- {key: user, rate_limit: {unit: day, requests_per_unit: 5, name: user}}
- {key: team, rate_limit: {unit: hour, requests_per_unit: 9, replaces: [{name: user}]}}
- {key: free, rate_limit: {unlimited: true}}
- {key: none, rate_limit: {unit: hour, requests_per_unit: 0}}
`
	if err := os.WriteFile(filepath.Join(folder, "limits"), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ descriptors, verdict, counted string }{
		{"user=a", "counted by user", "true"},
		{"user=a team=b", "counted by team", "false true"},
		{"team=b user=a user=b", "counted by team", "true false false"},
		{"free=a", "admitted: no limit applies", "false"},
		{"user=a none=b", "denied, since none admits nothing", "true true"},
	} {
		out, errs, code := command(append([]string{"limits", "explain", "--json", "--domain", "d", folder}, strings.Fields(row.descriptors)...)...)
		var x envoyExplanation
		if err := json.Unmarshal([]byte(out), &x); err != nil || code != exitOK {
			t.Fatalf("exit %d, %v: %s", code, err, errs)
		}
		var got []string
		for _, d := range x.Descriptors {
			text := "false"
			if d.Counted {
				text = "true"
			}
			if got = append(got, text); d.Counted != (d.Window != "") || d.Key != "" && !d.Counted {
				t.Errorf("%s: %+v", row.descriptors, d)
			}
		}
		if x.Verdict != row.verdict || strings.Join(got, " ") != row.counted {
			t.Errorf("%s: %s, counted %v:\n%s", row.descriptors, x.Verdict, got, out)
		}
	}
}

// TestEnvoyImport: an import takes the tenant from the key that a flag names, and its limits file can
// be used.
func TestEnvoyImport(t *testing.T) {
	out, errs, code := command("limits", "import", "envoy", shopLimits)
	if code != exitDenied || !strings.Contains(out, "    - {id: tenant, by: [tenant], rate: 600/m, algorithm: fixed_window, on_error: open}\n") || !strings.Contains(errs, shopLimits+"/shop.yaml:6: the key remote_address is the ip\n") {
		t.Errorf("exit %d: %s\n%s", code, errs, out)
	}
	out, _, _ = command("limits", "import", "envoy", "--tenant-key", "route", shopLimits)
	if !strings.Contains(out, `{id: login, by: [tenant, ip], when: {tenant: "login"}`) {
		t.Errorf("the tenant is not the route:\n%s", out)
	}
	if !strings.Contains(out, "{id: tenant, by: [tenant-key], rate: 600/m") {
		t.Errorf("the key tenant is still the tenant:\n%s", out)
	}
}
