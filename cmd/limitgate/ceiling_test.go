package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/cluster/doctor"
)

const ceilingLimits = "{version: 1, default_plan: p, plans: {p: [{id: a, by: [tenant], rate: 500/s, on_error: open}]}, tenants: {t: {plan: p}, u: {plan: p}}}"

func writeCeilingLimits(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(path, []byte(ceilingLimits), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestLintAsksForCeiling: lint --strict names the setting and the value that fits, unless
// --backstop-total-rate is passed.
func TestLintAsksForCeiling(t *testing.T) {
	path := writeCeilingLimits(t)
	for flags, want := range map[string]string{
		"":                                   "",
		"--strict":                           "; 1000 divided by the number of proxies would fit, since the limits of the tenants that are listed, 2, admit as much; any others come on top; less, if what stands behind bears less (warning)",
		"--strict --instances 1":             "; 1000 would fit, since the limits",
		"--strict --instances 3":             "; 334 would fit, that is 1000 divided by 3 proxies, since the limits",
		"--strict --backstop-total-rate 400": "",
	} {
		var out, errs strings.Builder
		code := runLint(t.Context(), &environment{stdout: &out, stderr: &errs}, append(strings.Fields(flags), path))
		asked := strings.Contains(errs.String(), backstop.CeilingOff)
		if code != exitOK || asked != (want != "") || !strings.Contains(errs.String(), want) {
			t.Errorf("lint %s: exit %d\n%s%s", flags, code, out.String(), errs.String())
		}
	}
	var errs strings.Builder
	if code := runLint(t.Context(), &environment{stdout: &errs, stderr: &errs}, []string{"--instances", "-1", path}); code != exitUsage {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// TestDoctorAsksForCeiling: doctor has a note on it, with the value if the limits are
// passed.
func TestDoctorAsksForCeiling(t *testing.T) {
	env := &environment{}
	for _, c := range []struct {
		flags ceilingFlags
		path  string
		want  string
	}{
		{ceilingFlags{}, "", "--limits FILE has doctor say which number would fit"},
		{ceilingFlags{instances: 2}, writeCeilingLimits(t), "; 500 would fit, that is 1000 divided by 2 proxies"},
		{ceilingFlags{totalRate: 1}, "", ""},
	} {
		var r doctor.Report
		if err := c.flags.find(env, &r, c.path); err != nil {
			t.Fatal(err)
		}
		if c.want == "" {
			if len(r.Findings) != 0 {
				t.Errorf("found %+v", r.Findings)
			}
			continue
		}
		if len(r.Findings) != 1 || r.Findings[0].Severity != doctor.SeverityNote || !strings.Contains(r.Findings[0].Text, c.want) || r.Verdict != doctor.SeverityNote {
			t.Errorf("found %+v, want %q", r.Findings, c.want)
		}
	}
	var r doctor.Report
	if err := (&ceilingFlags{}).find(env, &r, filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a file that is not there is no error")
	}
}
