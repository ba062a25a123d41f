package drill

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// fakeFault is an outage of nothing, in simulated time.
type fakeFault struct {
	began, restored      time.Time
	recovered            atomic.Pointer[time.Time]
	recoverTime          time.Duration
	beginErr, recoverErr error
	restoreCtx           error // of the context of Restore
}

func (f *fakeFault) Begin(context.Context, time.Duration) error {
	f.began = time.Now()
	return f.beginErr
}

func (f *fakeFault) Recover(context.Context) error {
	time.Sleep(f.recoverTime)
	f.recovered.Store(new(time.Now()))
	return f.recoverErr
}

func (f *fakeFault) Restore(ctx context.Context) error {
	f.restored, f.restoreCtx = time.Now(), ctx.Err()
	return nil
}

// scene is a limitgate in simulated time, whose store is away during the fault and for lag behind it.
type scene struct {
	fault *fakeFault
	lag   time.Duration
	lines []Line
	sent  int
}

func (s *scene) check(context.Context) (Answer, error) {
	s.sent++
	time.Sleep(time.Millisecond)
	recovered := s.fault.recovered.Load()
	if !s.fault.began.IsZero() && (recovered == nil || time.Since(*recovered) < s.lag) {
		return Answer{Admitted: true, Source: sourceBackstop}, nil
	}
	return Answer{Admitted: s.sent%10 > 0, Source: sourceStore}, nil
}

func (s *scene) options() *Options {
	return &Options{
		Fault: s.fault, Check: s.check, Rate: 100, Outage: 3 * time.Second, Within: 5 * time.Second,
		Line: func(l *Line) { s.lines = append(s.lines, *l) },
	}
}

// TestRun checks the times and the numbers of a drill that passes.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scene{fault: &fakeFault{recoverTime: 700 * time.Millisecond}, lag: 500 * time.Millisecond}
		v, err := Run(t.Context(), s.options())
		if err != nil || !v.Passed || v.Back == nil {
			t.Fatalf("%+v %v", v, err)
		}
		if *v.Back < 1200 || *v.Back > 1215 || v.Without < 4185 || v.Without > 4215 {
			t.Errorf("back after %v ms, without for %v ms", *v.Back, v.Without)
		}
		if v.Checks != s.sent || v.Answered != s.sent || v.Errors != 0 || v.Admitted+v.Denied != v.Checks || v.Slowest != 1 {
			t.Errorf("%d sent: %+v", s.sent, v)
		}
		total, phases := 0, ""
		for i, l := range s.lines {
			total += l.Checks
			if l.Checks > 101 || l.Second != i+1 {
				t.Errorf("line %d: %+v", i, l)
			}
			phases += l.Phase[:1]
		}
		if total != v.Checks || phases != "bbooorrr" {
			t.Errorf("%d checks in lines of the phases %s", total, phases)
		}
		if s.fault.restored.IsZero() {
			t.Error("nothing was restored")
		}
	})
}

// TestRunFailed checks that each fault of an outage fails the drill, with its reason.
func TestRunFailed(t *testing.T) {
	for name, row := range map[string]struct {
		change func(s *scene, o *Options)
		want   string
	}{
		"never back": {func(s *scene, _ *Options) { s.lag = time.Hour }, "the store did not decide again within 5s"},
		"too late":   {func(s *scene, _ *Options) { s.lag = 5500 * time.Millisecond }, "the store did not decide again within 5s"},
		"an error": {func(s *scene, o *Options) {
			o.Check = func(ctx context.Context) (Answer, error) {
				if a, err := s.check(ctx); s.sent != 300 {
					return a, err
				}
				return Answer{}, errors.New("broken")
			}
		}, " checks got no decision, the first one: broken"},
		"no effect": {func(_ *scene, o *Options) {
			o.Check = func(context.Context) (Answer, error) { return Answer{Source: sourceStore}, nil }
		}, "no check was decided without the store"},
		"no recovery": {func(s *scene, _ *Options) { s.fault.recoverErr = errors.New("promote: no") }, "promote: no"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{fault: &fakeFault{}}
				o := s.options()
				row.change(s, o)
				v, err := Run(t.Context(), o)
				if err != nil || v.Passed {
					t.Fatalf("%+v %v", v, err)
				}
				problems := strings.Join(v.Problems, "\n")
				if !strings.Contains(problems, row.want) {
					t.Error(problems)
				}
				if took := time.Since(s.fault.began); took > 10*time.Second || s.fault.restored.IsZero() {
					t.Errorf("it took %v and was restored at %v", took, s.fault.restored)
				}
			})
		})
	}
}

// TestRunNotReady checks that there is no outage where the store does not decide before it.
func TestRunNotReady(t *testing.T) {
	for name, row := range map[string]struct {
		answer Answer
		err    error
		want   string
	}{
		"leases": {Answer{true, "lease"}, nil, "the store decides too few checks of tenant drill (lease 20"},
		"errors": {Answer{}, errors.New("refused"), "send check: refused"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &scene{fault: &fakeFault{}}
				o := s.options()
				o.Check = func(context.Context) (Answer, error) { return row.answer, row.err }
				if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), row.want) || !s.fault.began.IsZero() {
					t.Errorf("%v, began at %v", err, s.fault.began)
				}
			})
		})
	}
}

// TestRunInterrupted checks that an outage is restored at once when the context ends, or when it
// could not be made.
func TestRunInterrupted(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 3 * time.Second, 5100 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			s := &scene{fault: &fakeFault{}, lag: time.Hour}
			ctx, cancel := context.WithTimeout(t.Context(), after)
			defer cancel()
			began := time.Now()
			v, err := Run(ctx, s.options())
			if v != nil || err == nil || !strings.HasPrefix(err.Error(), "interrupted") || time.Since(began) > after+100*time.Millisecond {
				t.Errorf("after %v: %+v %v", time.Since(began), v, err)
			}
			if begun := !s.fault.began.IsZero(); begun != !s.fault.restored.IsZero() || begun != (after > before) || s.fault.restoreCtx != nil {
				t.Errorf("after %v: %+v", after, s.fault)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := &scene{fault: &fakeFault{beginErr: errors.New("no right")}}
		if v, err := Run(t.Context(), s.options()); v != nil || err == nil || err.Error() != "no right" || s.fault.restored.IsZero() {
			t.Errorf("%+v %v", v, err)
		}
	})
}
