package main

import (
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/cluster/doctor"
	"github.com/limitgate/limitgate/limit"
)

// ceilingFlags describe a proxy to a command that advises on --backstop-total-rate.
type ceilingFlags struct{ totalRate, instances int }

func (f *ceilingFlags) define(fs *flag.FlagSet) {
	fs.IntVar(&f.totalRate, "backstop-total-rate", 0, "the `number` that serve is given: without one it is asked for")
	fs.IntVar(&f.instances, "instances", 0, "how many proxies share the limits, to say which `number` would fit")
}

// check returns an error for negative numbers.
func (f *ceilingFlags) check() error {
	if f.totalRate < 0 || f.instances < 0 {
		return fmt.Errorf("--backstop-total-rate and --instances must not be below zero")
	}
	return nil
}

// find adds a finding to a doctor report if serve has no backstop ceiling, with the value
// that fits the limits file at path, unless path is empty.
func (f *ceilingFlags) find(env *environment, r *doctor.Report, path string) error {
	if f.totalRate > 0 {
		return nil
	}
	text := backstop.CeilingOff + ", unless serve is given it; limitgate doctor --limits FILE names a number that fits"
	if path != "" {
		set, _, err := loadLimits(env, path, limit.CompileOptions{})
		if err != nil {
			return err
		}
		text = backstop.CeilingAdvice(set.TotalRate(), f.instances)
		nameLongWindows(r, set)
	}
	r.Findings = append(r.Findings, doctor.Finding{Severity: doctor.SeverityNote, Check: "backstop", Text: text})
	r.Verdict = max(r.Verdict, doctor.SeverityNote)
	return nil
}

// nameLongWindows says in the finding about the AOF which limits of a set need it.
func nameLongWindows(r *doctor.Report, set *limit.Set) {
	i := slices.IndexFunc(r.Findings, func(f doctor.Finding) bool {
		return f.Check == doctor.CheckPersistence && f.Severity == doctor.SeverityWarn
	})
	if i < 0 {
		return
	}
	all := set.All()
	if first := slices.IndexFunc(all, (*limit.Limit).CountsDays); first >= 0 {
		r.Findings[i].Text = fmt.Sprintf("a restart may come back empty, and forgets what windows of a day and more have counted, as %s has: set appendonly yes", limit.Quote(all[first].ID))
		return
	}
	r.Findings[i].Severity, r.Findings[i].Text = doctor.SeverityNote, "a restart may come back empty: no limit of the file counts over a day or more"
	r.Verdict = 0
	for _, f := range r.Findings {
		r.Verdict = max(r.Verdict, f.Severity)
	}
}

// advice returns the advice to lint on a limits file, which could not be used if there is an error, or "".
func (f *ceilingFlags) advice(set *limit.Set, err error) string {
	switch {
	case f.totalRate > 0:
		return ""
	case err == nil:
		return backstop.CeilingAdvice(set.TotalRate(), f.instances)
	case errors.As(err, new(*limit.Problems)):
		return backstop.CeilingOff + "; lint says which number fits when the mistakes are mended"
	}
	return "" // the file cannot be read
}
