package main

import (
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/cluster/doctor"
	"github.com/limitgate/limitgate/limit"
)

// nameLimitsOfDays says in the finding about the AOF which limits of a set need it.
func nameLimitsOfDays(r *doctor.Report, set *limit.Set) {
	i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool {
		return f.Check == doctor.CheckPersistence && f.Severity == doctor.SeverityWarn
	})
	if i < 0 {
		return
	}
	all := set.All()
	if first := slices.IndexFunc(all, (*limit.Limit).CountsDays); first >= 0 {
		r.Findings[i].Text = fmt.Sprintf("a restart may come back empty, and forgets the counts of limits that keep them for a day or more, such as %s: set appendonly yes", limit.Quote(all[first].ID))
		return
	}
	r.Findings[i].Severity, r.Findings[i].Text = doctor.SeverityNote, "a restart may come back empty: no limit of the file keeps its count for a day or more"
	r.Verdict = 0
	for _, f := range r.Findings {
		r.Verdict = max(r.Verdict, f.Severity)
	}
}
