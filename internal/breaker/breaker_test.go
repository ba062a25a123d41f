package breaker_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
)

var (
	start = time.Unix(1_800_000_000, 0)
	errIt = errors.New("it does not answer")
)

// bench is a breaker with a clock and its transitions.
type bench struct {
	*breaker.Breaker
	now         time.Time
	transitions []breaker.Transition
}

func newBench(opts breaker.Options) *bench {
	b := &bench{now: start}
	opts.Changed = func(t breaker.Transition) { b.transitions = append(b.transitions, t) }
	b.Breaker = breaker.New(opts)
	return b
}

func (b *bench) pass(d time.Duration) { b.now = b.now.Add(d) }
func (b *bench) allow() bool          { return b.Allow(b.now) }

// record records an outcome, which has an error if a call failed.
func (b *bench) record(o breaker.Outcome) {
	if o.Failed+o.Stuck > 0 {
		o.Err = errIt
	}
	b.Record(b.now, o)
}

// trip opens the breaker.
func (b *bench) trip(t *testing.T) {
	t.Helper()
	for range 150 {
		if b.Status().State == breaker.Closed {
			b.record(breaker.Outcome{Failed: 1})
		}
		b.pass(time.Millisecond)
	}
	if b.Status().State != breaker.Open {
		t.Fatalf("after 150 failures in a row: %+v", b.Status())
	}
}

// TestOpens checks which outcomes open a breaker, and which do not.
func TestOpens(t *testing.T) {
	type step struct {
		after time.Duration
		times int
		breaker.Outcome
	}
	ok := func(n int) breaker.Outcome { return breaker.Outcome{OK: n} }
	failed := func(n int) breaker.Outcome { return breaker.Outcome{Failed: n} }
	stuck := func(n int) breaker.Outcome { return breaker.Outcome{Stuck: n} }
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		steps []step
		want  breaker.State
	}{
		"a row":                           {[]step{{0, 1, ok(1000)}, {ms, 150, failed(1)}}, breaker.Open},
		"a slow row":                      {[]step{{10 * time.Second, 10, failed(1)}}, breaker.Open},
		"a row of nine":                   {[]step{{10 * time.Second, 9, failed(1)}}, breaker.Closed},
		"a row of calls that were stuck":  {[]step{{ms, 150, stuck(1)}}, breaker.Open},
		"a row with a success in it":      {[]step{{ms, 9, failed(1)}, {0, 1, ok(1)}, {ms, 9, failed(1)}}, breaker.Closed},
		"all that were away at one pause": {[]step{{ms, 100, ok(10)}, {0, 1, failed(500)}}, breaker.Closed},
		"nothing":                         {[]step{{ms, 100, ok(0)}}, breaker.Closed},
		"half of all":                     {[]step{{30 * ms, 25, breaker.Outcome{OK: 1, Failed: 1}}}, breaker.Open},
		"half of a few":                   {[]step{{60 * ms, 19, breaker.Outcome{OK: 1, Failed: 1}}}, breaker.Closed},
		"less than half":                  {[]step{{ms, 500, breaker.Outcome{OK: 21, Failed: 20}}}, breaker.Closed},
		"more than half, stuck":           {[]step{{ms, 500, breaker.Outcome{OK: 1, Stuck: 20}}}, breaker.Closed},
		"half a second ago":               {[]step{{ms, 1, failed(19)}, {500 * ms, 1, breaker.Outcome{OK: 1, Failed: 1}}}, breaker.Open},
		"two seconds ago":                 {[]step{{ms, 1, failed(19)}, {2 * time.Second, 1, breaker.Outcome{OK: 1, Failed: 1}}}, breaker.Closed},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(breaker.Options{})
			for _, s := range c.steps {
				for range s.times {
					b.pass(s.after)
					b.record(s.Outcome)
				}
			}
			if got := b.Status(); got.State != c.want || b.allow() != (c.want == breaker.Closed) {
				t.Errorf("%+v, want %s", got, c.want)
			}
		})
	}
}

// TestProbe checks that after the pause one call is admitted, and that its outcome
// decides.
func TestProbe(t *testing.T) {
	b := newBench(breaker.Options{Random: func() float64 { return 0.5 }})
	b.trip(t)
	opened := b.Status().Probe
	b.now = opened.Add(-1)
	if b.allow() {
		t.Error("a call before the pause is over")
	}
	b.pass(1)
	if !b.allow() || b.allow() {
		t.Error("want one probe when the pause is over")
	}
	b.record(breaker.Outcome{Failed: 1})
	if st := b.Status(); st.State != breaker.Open || !errors.Is(st.Err, errIt) || st.Probe.Sub(b.now) != 1100*time.Millisecond {
		t.Errorf("after a failed probe: %+v", st)
	}
	b.pass(1100 * time.Millisecond)
	if !b.allow() {
		t.Error("no second probe")
	}
	b.pass(breaker.DefaultProbeTimeout - 1)
	if b.allow() {
		t.Error("a call while the probe is away")
	}
	b.pass(1)
	if b.allow() || b.Status().State != breaker.Open {
		t.Error("a lost probe must open it again")
	}
	b.pass(1100 * time.Millisecond)
	if !b.allow() {
		t.Error("no third probe")
	}
	b.record(breaker.Outcome{OK: 1})
	if st := b.Status(); st.State != breaker.Closed || st.Err != nil || !b.allow() || !b.allow() {
		t.Errorf("after a good probe: %+v", st)
	}
	want := "closed open half_open open half_open open half_open closed"
	got := "closed"
	for _, tr := range b.transitions {
		got += " " + tr.To.String()
	}
	last := b.transitions[len(b.transitions)-1]
	if got != want || last.Outage != b.now.Sub(start) {
		t.Errorf("%s with an outage of %v, want %s with %v", got, last.Outage, want, b.now.Sub(start))
	}
}

// TestProbesSpread checks that breakers that open at the same instant do not probe at the
// same instant.
func TestProbesSpread(t *testing.T) {
	const proxies, bin = 500, 10 * time.Millisecond
	bins := map[int64]int{}
	for range proxies {
		b := newBench(breaker.Options{})
		b.trip(t)
		pause := b.Status().Probe.Sub(start)
		bins[int64(pause/bin)]++
		if spent := b.Status().Probe.Sub(b.now); spent < 850*time.Millisecond || spent > 1200*time.Millisecond {
			t.Fatalf("a pause of %v", spent)
		}
	}
	for at, n := range bins {
		if n > proxies/20*3 { // the mean of the 20 bins of a fifth of a second, three times
			t.Errorf("%d of %d probe within 10 ms, at %d ms", n, proxies, 10*at)
		}
	}
}

// TestOneProbeOfMany checks that one of many concurrent calls is admitted.
func TestOneProbeOfMany(t *testing.T) {
	b := newBench(breaker.Options{})
	b.trip(t)
	now := b.Status().Probe
	var wg sync.WaitGroup
	var let atomic.Int32
	for range 50 {
		wg.Go(func() {
			if b.Allow(now) {
				let.Add(1)
			}
		})
	}
	wg.Wait()
	if let.Load() != 1 {
		t.Errorf("%d calls were let through", let.Load())
	}
}

func BenchmarkAllow(b *testing.B) {
	for _, state := range []breaker.State{breaker.Closed, breaker.Open} {
		b.Run(fmt.Sprint(state), func(b *testing.B) {
			br, now := breaker.New(breaker.Options{}), start
			for range 150 * int(state) {
				now = now.Add(time.Millisecond)
				br.Record(now, breaker.Outcome{Failed: 1, Err: errIt})
			}
			b.ReportAllocs()
			for b.Loop() {
				if br.Allow(now) != (state == breaker.Closed) {
					b.Fatal("wrong state")
				}
			}
		})
	}
}

// TestWhyItOpened checks that a late success does not hide the error that opened the
// breaker.
func TestWhyItOpened(t *testing.T) {
	b := breaker.New(breaker.Options{})
	now := time.Unix(1_800_000_000, 0)
	why := errors.New("send call: NOPERM")
	b.Record(now, breaker.Outcome{Failed: 20, Err: why})
	b.Record(now, breaker.Outcome{OK: 3})
	if st := b.Status(); st.State != breaker.Open || !errors.Is(st.Err, why) {
		t.Errorf("%+v", st)
	}
}

// TestFailureOpens: a breaker opens by a failure, whose error the transition has, also if calls that succeeded
// have left the window.
func TestFailureOpens(t *testing.T) {
	b := newBench(breaker.Options{})
	b.record(breaker.Outcome{OK: 40})
	b.pass(500 * time.Millisecond)
	b.record(breaker.Outcome{Failed: 30})
	b.pass(700 * time.Millisecond)
	b.record(breaker.Outcome{OK: 1})
	if len(b.transitions) != 0 {
		t.Fatalf("a success made %+v", b.transitions)
	}
	b.record(breaker.Outcome{Failed: 1})
	if len(b.transitions) != 1 || b.transitions[0].To != breaker.Open || !errors.Is(b.transitions[0].Err, errIt) {
		t.Errorf("a failure made %+v", b.transitions)
	}
	for seed := range uint64(200) {
		b, random := newBench(breaker.Options{}), rand.New(rand.NewPCG(seed, 1))
		for range 2000 {
			b.pass(time.Duration(random.IntN(60)) * time.Millisecond)
			if b.allow() {
				b.record(breaker.Outcome{OK: random.IntN(4), Failed: random.IntN(4), Stuck: random.IntN(2)})
			}
		}
		for _, tr := range b.transitions {
			if tr.From == breaker.Closed && tr.Err == nil {
				t.Fatalf("seed %d: %+v", seed, tr)
			}
		}
	}
}

// TestForget checks that an error that is past is not reported by a closed breaker, and still counts.
func TestForget(t *testing.T) {
	b := breaker.New(breaker.Options{})
	now := time.Unix(1_800_000_000, 0)
	fail := func(n int) { b.Record(now, breaker.Outcome{Failed: n, Err: errIt}) }
	fail(5)
	for _, past := range []bool{false, true} {
		b.Forget(func(err error) bool { return past && errors.Is(err, errIt) })
		if st := b.Status(); (st.Err == nil) != past {
			t.Errorf("past %t: %+v", past, st)
		}
	}
	fail(15)
	b.Forget(func(error) bool { return true })
	if st := b.Status(); st.State != breaker.Open || !errors.Is(st.Err, errIt) {
		t.Errorf("%+v", st)
	}
}
