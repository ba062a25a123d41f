package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/capacity"
)

// written writes a file of a test, and returns its path.
func written(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPlanLimits: the calls to the store are those of the limits: buckets in the proxies make none,
// and a bucket that spans tenants makes one of its own.
func TestPlanLimits(t *testing.T) {
	for limits, want := range map[string]string{
		`plans: {p: [{id: a, by: [tenant], rate: 10/s}]}`:                                                                           `[{"fields":1,"keys":0}] 0 10`,
		`plans: {p: [{id: a, by: [tenant], rate: 10/s}, {id: b, by: [tenant, op], rate: 9/s, missing: pass}]}`:                      `[{"fields":1,"keys":1}] 0 10`,
		`plans: {p: [{id: a, by: [tenant], rate: 10/s, store: local}]}`:                                                             `[] 1 0`,
		`plans: {p: [{id: a, by: [tenant], rate: 10/s, lease: auto}]}`:                                                              `[{"fields":1,"keys":0}] 0 0`,
		`{plans: {p: [{id: a, by: [tenant], rate: 10/s}]}, shared: [{id: ip, by: [ip], rate: 600/m, missing: pass}]}`:               `[{"fields":1,"keys":0},{"fields":0,"keys":1}] 0 10`,
		`plans: {p: [{id: a, by: [tenant], rate: 10/s}, {id: b, by: [tenant], group: g, rate: 5/s, when: {op: "POST *"}}]}`:         `[{"fields":2,"keys":0}] 0 10`,
		`plans: {p: [{id: a, by: [tenant], rate: 10/s}], q: [{id: b, by: [tenant, user], rate: 5/s, missing: pass, mode: shadow}]}`: `[{"fields":1,"keys":0}] 0 10`,
	} {
		body := strings.TrimSuffix(strings.TrimPrefix(limits, "{"), "}")
		if !strings.HasPrefix(limits, "{") {
			body = limits
		}
		path := written(t, "limits.yaml", "{version: 1, default_plan: p, "+body+"}")
		out, errs, code := command("plan", "--rps", "1M", "--json", "--limits", path)
		var p struct {
			Inputs struct {
				Request struct {
					Calls json.RawMessage
					Local int
				}
				Top capacity.Number `json:"highest_rate_of_a_bucket"`
			}
		}
		if err := json.Unmarshal([]byte(out), &p); err != nil || code != exitOK {
			t.Fatalf("%s: exit %d: %s", limits, code, errs)
		}
		calls := strings.Join(strings.Fields(string(p.Inputs.Request.Calls)), "")
		if got := fmt.Sprint(calls, " ", p.Inputs.Request.Local, " ", p.Inputs.Top.Value); got != want {
			t.Errorf("%s: %s, want %s", limits, got, want)
		}
	}
}

// TestPlanFiles: a measurement and prices of files replace the defaults, and the origins say so.
func TestPlanFiles(t *testing.T) {
	builtIn, _, code := command("plan", "--print-prices")
	if code != exitOK || builtIn != string(capacity.DefaultPrices) {
		t.Fatalf("exit %d: %s", code, builtIn)
	}
	prices := written(t, "prices.json", strings.Replace(builtIn, `"transfer"`, `"proxy": {"usd_per_hour": 0.1, "source": "s"}, "transfer"`, 1))
	measured := written(t, "measured.json", `{"date":"2026-11-01","store":"Redis 7 at h:1","tls":false,"calls_per_script":5,"points":[{"buckets":1,"cpu_us":3,"calls":9},{"buckets":2,"cpu_us":4,"calls":9}]}`)
	out, errs, code := command("plan", "--rps", "1M", "--prices", prices, "--measured", measured)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{
		"shards      5   decided by cpu", "$365", "1,000,000 requests/s x 3 us / 0.6",
		"measured by doctor (Redis 7 at h:1, 2026-11-01, 5 calls in a script)",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestPlanStale: old prices have a warning, which leaves the report as it is.
func TestPlanStale(t *testing.T) {
	for date, want := range map[string]bool{"2026-11-01": false, "2027-05-01": true} {
		now, err := time.Parse(time.DateOnly, date)
		if err != nil {
			t.Fatal(err)
		}
		var errs strings.Builder
		f := planFlags{numbers: map[string]*countFlag{"rps": {value: 1, set: true}}}
		for _, name := range []string{"peak-rps", "tenants", "values", "local-share", "utilisation", "replicas", "proxy-cores"} {
			f.numbers[name] = new(countFlag)
		}
		if _, err := f.input(&environment{stderr: &errs}, now); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(errs.String(), "the prices are of 2026-10-02, more than 180 days old"); got != want {
			t.Errorf("%s: %q", date, errs.String())
		}
	}
}
