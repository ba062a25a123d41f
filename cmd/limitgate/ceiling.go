package main

import (
	"errors"
	"flag"
	"fmt"

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
// that fits the limits file at path, unless path is empty. By that file it names too which limits need an AOF.
func (f *ceilingFlags) find(env *environment, r *doctor.Report, path string) error {
	text := backstop.CeilingOff + ", unless serve is given it; limitgate doctor --limits FILE names a number that fits"
	if path != "" {
		set, _, err := loadLimits(env, path, limit.CompileOptions{})
		if err != nil {
			return err
		}
		text = backstop.CeilingAdvice(set.TotalRate(), f.instances)
		nameLimitsOfDays(r, set)
	}
	if f.totalRate > 0 {
		return nil
	}
	r.Findings = append(r.Findings, doctor.Finding{Severity: doctor.SeverityNote, Check: "backstop", Text: text})
	r.Verdict = max(r.Verdict, doctor.SeverityNote)
	return nil
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
