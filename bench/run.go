package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Options are the options of Run.
type Options struct {
	// Limitgate is the path of the binary.
	Limitgate string
	// Only names the cases to run; empty is all except those with Aside. A name with a
	// trailing * matches all names with that prefix.
	Only []string
	// Quick runs all cases in about a minute, as a smoke test.
	Quick bool
	// Rounds and Round override the number and duration of the rounds of each side.
	Rounds int
	Round  time.Duration
	// Profiles is a folder for a CPU profile of the proxy for each case that compares;
	// empty is none.
	Profiles string
	// RedisCell is the file of redis-cell's module, for the cases that need it.
	RedisCell string
	// EnvoyRatelimit is a binary of envoyproxy/ratelimit, for the cases beside it.
	EnvoyRatelimit string
	// Progress receives a line for each case, or nothing if it is nil.
	Progress io.Writer
	// Live means that Progress is a terminal, on which a line can be overwritten.
	Live bool
}

// settings returns the options' settings with the defaults.
func (o *Options) settings() Settings {
	s := Settings{Quick: o.Quick, Rounds: 5, RoundSeconds: 1.2}
	if o.Quick {
		s.Rounds, s.RoundSeconds = 3, 0.15
	}
	if o.Rounds > 0 {
		s.Rounds = o.Rounds
	}
	if o.Round > 0 {
		s.RoundSeconds = o.Round.Seconds()
	}
	return s
}

// Run runs the cases. If a case fails, the report contains the error and the others go
// on. Run returns an error if not all cases were run; the report, unless it is nil, has
// those that were.
func Run(ctx context.Context, o Options) (report *Report, err error) {
	cases, err := pick(Cases(), o.Only)
	if err != nil {
		return nil, err
	}
	machine, err := readMachine(o.Limitgate)
	if err != nil {
		return nil, err
	}
	p := &progress{to: o.Progress, live: o.Live, cases: len(cases)}
	l, err := newLab(o.Limitgate, o.settings(), p.say)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.close()) }()
	l.cellModule, l.envoyRatelimit = o.RedisCell, o.EnvoyRatelimit
	if l.profiles = o.Profiles; l.profiles != "" {
		if err := os.MkdirAll(l.profiles, 0o755); err != nil {
			return nil, fmt.Errorf("create folder for profiles: %w", err)
		}
	}
	report = &Report{Format: reportFormat, Started: time.Now().UTC().Truncate(time.Second), Machine: machine, Settings: l.settings}
	started := time.Now()
	for _, c := range cases {
		l.running = c.Name
		p.begin(c.Name)
		result, err := c.run(ctx, l)
		if ctx.Err() != nil {
			return report, fmt.Errorf("run %s: %w", c.Name, context.Cause(ctx))
		}
		if err != nil {
			result = &Result{Error: err.Error()}
		}
		result.Name, result.Title, result.About = c.Name, c.Title, c.About
		report.Cases = append(report.Cases, *result)
		report.Seconds = time.Since(started).Seconds()
		p.end(result)
	}
	return report, nil
}

// pick returns the cases that are named.
func pick(cases []Case, only []string) ([]Case, error) {
	if len(only) == 0 {
		return slices.DeleteFunc(cases, func(c Case) bool { return c.Aside }), nil
	}
	var picked []Case
	matched := make([]bool, len(only))
	for _, c := range cases {
		wanted := false
		for i, name := range only {
			begin, open := strings.CutSuffix(name, "*")
			if c.Name == name || open && strings.HasPrefix(c.Name, begin) {
				wanted, matched[i] = true, true
			}
		}
		if wanted {
			picked = append(picked, c)
		}
	}
	for i, name := range only {
		if !matched[i] {
			return nil, fmt.Errorf("pick case: there is no %q; --list names them", name)
		}
	}
	return picked, nil
}

// progress shows how far the run is.
type progress struct {
	to    io.Writer
	live  bool
	cases int
	done  int
	name  string
}

func (p *progress) begin(name string) {
	p.done++
	p.name = name
	p.say("starting")
}

// say shows the present step of a case, on a terminal only.
func (p *progress) say(format string, args ...any) {
	if p.to != nil && p.live {
		fmt.Fprintf(p.to, "\r\x1b[K[%d/%d] %s: %s", p.done, p.cases, p.name, fmt.Sprintf(format, args...))
	}
}

// end writes the final line of a case.
func (p *progress) end(r *Result) {
	if p.to == nil {
		return
	}
	if p.live {
		fmt.Fprint(p.to, "\r\x1b[K")
	}
	summary := "done"
	switch {
	case r.Error != "":
		summary = "FAILED: " + r.Error
	case len(r.Figures) > 0:
		f := &r.Figures[0]
		summary = strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Name, f.Unit.Format(f.Value.Median), f.Verdict))
	}
	fmt.Fprintf(p.to, "[%d/%d] %s: %s\n", p.done, p.cases, p.name, summary)
}
