package main

import (
	"context"
	"flag"
	"fmt"

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

const ceilingOff = "--backstop-total-rate is off: while the store is away nothing bounds what all tenants together are admitted"

// ceilingAdvice returns a sentence that recommends --backstop-total-rate with the value
// that fits for each of so many proxies; 0 means that their number is unknown.
func ceilingAdvice(fits limit.TotalRate, proxies int) string {
	const less = "less, if what stands behind bears less"
	n := int64(proxies)
	switch {
	case fits.Units == 0:
		return fmt.Sprintf("%s; %s, so that no number follows from the limits: choose what stands behind bears, divided by the number of proxies", ceilingOff, fits.Why)
	case n == 0:
		return fmt.Sprintf("%s; %d divided by the number of proxies would fit, since %s; %s", ceilingOff, fits.Units, fits.Why, less)
	case n == 1:
		return fmt.Sprintf("%s; %d would fit, since %s; %s", ceilingOff, fits.Units, fits.Why, less)
	default:
		return fmt.Sprintf("%s; %d would fit, that is %d divided by %d proxies, since %s; %s", ceilingOff, (fits.Units+n-1)/n, fits.Units, n, fits.Why, less)
	}
}

// find adds a finding to a doctor report if serve has no backstop ceiling, with the value
// that fits the limits file at path, unless path is empty.
func (f *ceilingFlags) find(env *environment, r *doctor.Report, path string) error {
	if f.totalRate > 0 {
		return nil
	}
	text := ceilingOff + ", unless serve is given it; --limits FILE has doctor say which number would fit"
	if path != "" {
		set, _, err := loadLimits(env, path, limit.CompileOptions{})
		if err != nil {
			return err
		}
		text = ceilingAdvice(set.TotalRate(), f.instances)
	}
	r.Findings = append(r.Findings, doctor.Finding{Severity: doctor.SeverityNote, Check: "backstop", Text: text})
	r.Verdict = max(r.Verdict, doctor.SeverityNote)
	return nil
}

// adviseCeiling logs that the backstop has no ceiling, once the number of proxies is
// known.
func (p *proxy) adviseCeiling(ctx context.Context) error {
	if p.settings.BackstopTotalRate > 0 {
		return nil
	}
	p.count.WaitFirst(ctx)
	proxies := 0
	if p.count.Status().Err == nil {
		proxies = p.count.Healthy()
	}
	p.log.Warn("the backstop has no ceiling", "advice", ceilingAdvice(p.limits.Set().TotalRate(), proxies))
	return nil
}
