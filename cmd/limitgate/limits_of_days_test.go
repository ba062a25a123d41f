package main

import (
	"strings"
	"testing"

	"github.com/limitgate/limitgate/cluster/doctor"
)

// TestLimitsOfDays: with a limits file doctor says which limit needs an AOF, or that none does.
func TestLimitsOfDays(t *testing.T) {
	for rate, want := range map[string]struct {
		severity doctor.Severity
		text     string
	}{
		"1000/month, algorithm: fixed_window": {doctor.SeverityWarn, `such as "a": set appendonly yes`},
		"1000/30d":                            {doctor.SeverityWarn, `such as "a": set appendonly yes`},
		"1/h, burst: 500":                     {doctor.SeverityWarn, `such as "a": set appendonly yes`},
		"1/h, burst: 23":                      {doctor.SeverityNote, "no limit of the file keeps its count for a day or more"},
		"9/h, algorithm: fixed_window":        {doctor.SeverityNote, "no limit of the file keeps its count for a day or more"},
	} {
		r := &doctor.Report{Verdict: doctor.SeverityWarn, Findings: []doctor.Finding{{Severity: doctor.SeverityWarn, Check: doctor.CheckPersistence}}}
		path := writeLimits(t, "version: 1\ndefault_plan: p\nplans: {p: [{id: a, by: [tenant], on_error: open, rate: "+rate+"}]}\n")
		if err := (&ceilingFlags{totalRate: 1}).find(&environment{}, r, path); err != nil {
			t.Fatal(err)
		}
		if f := r.Findings[0]; r.Verdict != want.severity || f.Severity != want.severity || !strings.Contains(f.Text, want.text) {
			t.Errorf("%s: %s, %s: %s", rate, r.Verdict, f.Severity, f.Text)
		}
	}
}
