package drill

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/limitgate/limitgate/internal/run"
)

// Options are those of a run.
type Options struct {
	Fault Fault
	// Check sends a check of Tenant, and returns after a bounded time.
	Check func(ctx context.Context) (Answer, error)
	// State, unless nil, returns the state of the breakers for people. It is called once a second.
	State func(ctx context.Context) string
	// Rate is the checks a second.
	Rate int
	// Outage is how long the outage lasts.
	Outage time.Duration
	// Within is how long the store may take to decide again, from the begin of its recovery on.
	Within time.Duration
	// Line receives each second.
	Line func(*Line)
}

// The times of a run.
const (
	// before is how long the store has to decide before the outage.
	before = 2 * time.Second
	// hold is how long the store has to decide behind it, before it counts as back.
	hold = time.Second
	// restoreTime bounds the end of an outage that was interrupted.
	restoreTime = 5 * time.Second
)

// runner is a run. One goroutine uses it.
type runner struct {
	*Options
	began, next time.Time // the start, and the time of the next check
	phase       string
	line        Tally // since the last line
	lines       int   // the second of the last line
	all         Tally
	outage      Tally // since the begin of the outage
	first       error // of the checks
	absence     absence
}

// Run sends checks, makes the outage, ends it and returns what became of the checks. It returns an
// error if the outage could not be made, or if ctx ends.
func Run(ctx context.Context, o *Options) (*Verdict, error) {
	now := time.Now()
	r := &runner{Options: o, began: now, next: now, phase: PhaseBefore}
	r.until(ctx, func(now time.Time) bool { return now.Sub(r.began) >= before })
	if err := r.checkReady(); err != nil && ctx.Err() == nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, errors.New("interrupted before the outage")
	}
	return r.disturb(ctx)
}

// checkReady returns an error unless the store decides the checks.
func (r *runner) checkReady() error {
	if r.first != nil {
		return fmt.Errorf("send check: %w", r.first)
	}
	if r.all.Sources[sourceStore]*2 < r.all.Checks {
		return fmt.Errorf("the store decides too few checks of tenant %s (%s): its limits must be in the store without a lease, and admit more than the %d checks a second of --rate",
			Tenant, r.all.sources(), r.Rate)
	}
	return nil
}

// disturb makes the outage and ends it.
func (r *runner) disturb(ctx context.Context) (v *Verdict, err error) {
	defer func() {
		restoring, cancel := context.WithTimeout(context.WithoutCancel(ctx), restoreTime)
		defer cancel()
		restored := r.Fault.Restore(restoring)
		if restored == nil && err == nil && ctx.Err() != nil {
			err = errors.New("interrupted: the outage is ended")
		}
		err = errors.Join(err, restored)
	}()
	if err := r.Fault.Begin(ctx, r.Outage); err != nil {
		return nil, err
	}
	r.phase = PhaseOutage
	began := time.Now()
	r.until(ctx, func(now time.Time) bool { return now.Sub(began) >= r.Outage })
	if ctx.Err() != nil {
		return nil, nil
	}
	return r.finish(ctx), nil
}

// finish ends the outage, waits until the store decides again, and returns the verdict, or nil if ctx
// ends.
func (r *runner) finish(ctx context.Context) *Verdict {
	r.phase = PhaseRecovery
	began := time.Now()
	r.absence.back = time.Time{}
	recovered := make(chan error, 1)
	go func() { recovered <- r.Fault.Recover(ctx) }()
	r.until(ctx, func(now time.Time) bool { return r.absence.over(now) || now.Sub(began) >= r.Within+hold })
	v := r.verdict(began, <-recovered)
	r.flush(ctx)
	if ctx.Err() != nil {
		return nil
	}
	return v
}

// until sends checks until done returns true.
func (r *runner) until(ctx context.Context, done func(now time.Time) bool) {
	interval := time.Second / time.Duration(r.Rate)
	for now := time.Now(); ctx.Err() == nil; now = time.Now() {
		if now.Sub(r.began) >= time.Duration(r.lines+1)*time.Second {
			r.flush(ctx)
		}
		if done(now) || !run.Sleep(ctx, time.Until(r.next)) {
			return
		}
		r.check(ctx)
		r.next = r.next.Add(interval)
		if now := time.Now(); r.next.Before(now) {
			r.next = now // a check that took long is not made up for
		}
	}
}

// check sends one check.
func (r *runner) check(ctx context.Context) {
	asked := time.Now()
	a, err := r.Check(ctx)
	done := time.Now()
	if err != nil {
		if ctx.Err() != nil {
			return
		}
		if r.first == nil {
			r.first = err
		}
	}
	r.line.add(a, err, done.Sub(asked))
	r.all.add(a, err, done.Sub(asked))
	if r.phase != PhaseBefore {
		r.outage.add(a, err, done.Sub(asked))
	}
	if err == nil {
		r.absence.add(a.Source, asked, done)
	}
}

// flush reports what happened since the last line.
func (r *runner) flush(ctx context.Context) {
	if r.line.Checks == 0 {
		return
	}
	l := &Line{Second: max(r.lines+1, int(time.Since(r.began)/time.Second)), Phase: r.phase, Tally: r.line}
	if r.State != nil {
		l.State = r.State(ctx)
	}
	r.lines = l.Second
	r.line = Tally{}
	r.Line(l)
}

// absence follows how long the store did not decide.
type absence struct {
	since   time.Time     // the first check that was decided without it; zero while it decides
	longest time.Duration // of the absences that are over
	back    time.Time     // since when it decides every check; zero while it does not
}

// add adds a decision.
func (s *absence) add(source string, asked, done time.Time) {
	switch source {
	case sourceBackstop, sourcePolicy:
		if s.since.IsZero() {
			s.since = asked
		}
		s.back = time.Time{}
	case sourceStore:
		if !s.since.IsZero() {
			s.longest = max(s.longest, done.Sub(s.since))
			s.since = time.Time{}
		}
		if s.back.IsZero() {
			s.back = done
		}
	}
}

// over reports whether the store has decided for long enough.
func (s *absence) over(now time.Time) bool { return !s.back.IsZero() && now.Sub(s.back) >= hold }

// until returns the longest absence, an unfinished one included.
func (s *absence) until(now time.Time) time.Duration {
	if s.since.IsZero() {
		return s.longest
	}
	return max(s.longest, now.Sub(s.since))
}
