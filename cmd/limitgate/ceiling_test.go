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
		"--strict":                           "; set it to 1000 divided by the number of proxies, or less if the service behind bears less: 1000 units a second is what the limits of the listed tenants (2) admit together, and other tenants come on top (warning)",
		"--strict --instances 1":             "; set it to 1000 divided by the number of proxies (1 now), or less",
		"--strict --instances 3":             "; set it to 334, that is 1000 divided by 3 proxies, or less",
		"--strict --backstop-total-rate 400": "",
	} {
		var out, errs strings.Builder
		code := runLint(t.Context(), &environment{stdout: &out, stderr: &errs}, append(strings.Fields(flags), path))
		asked := strings.Contains(errs.String(), backstop.CeilingOff)
		if code != exitOK || asked != (want != "") || !strings.Contains(errs.String(), want) {
			t.Errorf("lint %s: exit %d\n%s%s", flags, code, out.String(), errs.String())
		}
	}
	if _, errs, code := command("limits", "lint", "--strict", sampleLimits); code != exitError || !strings.Contains(errs, "so a secret") || !strings.Contains(errs, backstop.CeilingOff+"; lint says which number fits") {
		t.Errorf("lint of a file with mistakes: exit %d: %s", code, errs)
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
		{ceilingFlags{}, "", "doctor --limits FILE names a number that fits"},
		{ceilingFlags{instances: 2}, writeCeilingLimits(t), "; set it to 500, that is 1000 divided by 2 proxies"},
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
