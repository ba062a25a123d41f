package rollout

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// bench is a comparison with a clock of its own.
type bench struct {
	*Comparison
	t     *testing.T
	now   time.Time
	worse []Stats
}

func newBench(t *testing.T) *bench {
	t.Helper()
	addrs, err := limit.NewAddrHasher(limit.RandomSecret(), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, now: time.Unix(1_700_000_000, 0)}
	b.Comparison = New(Options{
		Addrs: addrs, Instances: func() int { return 2 }, Now: func() time.Time { return b.now },
		Worse: func(f Stats) { b.worse = append(b.worse, f) },
	})
	return b
}

// compile compiles a plan with a limit of a rate for each tenant, and one for each
// address.
func compile(t *testing.T, rate string, ids []string) *limit.Set {
	t.Helper()
	set, _, err := config.ParseLimits("limits", []byte(`
version: 1
default_plan: p
plans: {p: [{id: tenant, by: [tenant], rate: `+rate+`}]}
shared: [{id: ip, by: [ip], rate: 1000/s}]
`), limit.CompileOptions{IDs: ids})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// try starts a canary of a rate on all tenants, instead of 100/s.
func (b *bench) try(rate string, threshold float64) {
	b.t.Helper()
	base := compile(b.t, "100/s", nil)
	b.Begin(base.Try(compile(b.t, rate, base.IDs), limit.TrialWhole), threshold)
}

// ask sends requests per second of each of two tenants, for some seconds.
func (b *bench) ask(perSecond, seconds int) {
	b.t.Helper()
	for range seconds * perSecond {
		b.now = b.now.Add(time.Second / time.Duration(perSecond))
		for _, tenant := range []string{"a", "b"} {
			b.Observe(nil, &limit.Request{Tenant: tenant, Cost: 1})
		}
	}
}

// TestWorse: limits that deny more on the same requests are detected, once. Looser
// ones, equal ones, and those that deny the same requests are not.
func TestWorse(t *testing.T) {
	for _, c := range []struct {
		rate      string
		perSecond int
		threshold float64
		worse     bool
	}{
		{"20/s", 40, .05, true}, // an instance of two has 10/s of them
		{"20/s", 40, .95, false},
		{"20/s", 8, .05, false}, // no tenant sends so many
		{"100/s", 200, .05, false},
		{"400/s", 200, .05, false},
		{"98/s", 200, .05, false}, // three quarters are denied by both
	} {
		t.Run(fmt.Sprintf("%s of %d, %g", c.rate, c.perSecond, c.threshold), func(t *testing.T) {
			b := newBench(t)
			b.try(c.rate, c.threshold)
			b.ask(c.perSecond, 90)
			if got := len(b.worse); got > 1 || (got == 1) != c.worse {
				t.Errorf("found worse %d times: %v, %+v", got, b.worse, b.Figures())
			}
			for _, f := range b.worse {
				if f.Requests < requestsLeast || f.Excess() <= c.threshold || f.Version == "" {
					t.Errorf("found worse by %+v", f)
				}
			}
		})
	}
}

// TestFiguresAreOfAMinute: older requests are dropped, also after a pause.
func TestFiguresAreOfAMinute(t *testing.T) {
	b := newBench(t)
	b.try("100/s", .05)
	b.ask(10, 300)
	if n := b.Figures().Requests; n < 2*10*50 || n > 2*10*60 {
		t.Errorf("after five minutes of 20 a second there are %d", n)
	}
	b.now = b.now.Add(24 * time.Hour)
	b.ask(1, 1)
	if n := b.Figures().Requests; n != 2 {
		t.Errorf("after a day without any there are %d", n)
	}
}

// TestBegin: a changed tenant does not restart a canary, another version does, and
// nothing is counted after the canary.
func TestBegin(t *testing.T) {
	b := newBench(t)
	b.try("20/s", .9)
	b.ask(20, 10)
	before := b.Figures()
	b.try("20/s", .9) // as a catalog has it after each change
	b.ask(20, 1)
	if f := b.Figures(); f.Requests <= before.Requests || f.Version != before.Version {
		t.Errorf("the figures are %+v, before %+v", f, before)
	}
	b.try("10/s", .9)
	b.ask(20, 1)
	if f := b.Figures(); f.Requests != 40 || f.Version == before.Version {
		t.Errorf("of another version the figures are %+v", f)
	}
	b.Begin(compile(t, "10/s", nil), .9)
	b.ask(20, 1)
	if f := b.Figures(); f != (Stats{}) {
		t.Errorf("without a trial the figures are %+v", f)
	}
}

// TestLeftOut: reservations, slot requests, requests with an ID and requests with
// inline limits are not compared.
func TestLeftOut(t *testing.T) {
	b := newBench(t)
	b.try("20/s", .9)
	b.Observe(nil, &limit.Request{Tenant: "a", Cost: 1, Hold: limit.HoldSlot, ID: "x"})
	b.Observe(nil, &limit.Request{Tenant: "a", Cost: 1, Hold: limit.HoldReservation, ID: "x"})
	b.Observe(nil, &limit.Request{Tenant: "a", Cost: 1, ID: "x"})
	b.Observe(nil, &limit.Request{Key: "k", Cost: 1, Inline: &limit.Limit{}})
	b.Observe(nil, &limit.Request{Tenant: "t", Cost: 1, Bypass: true})
	if n := b.Figures().Requests; n != 0 {
		t.Errorf("%d requests are compared that cannot be", n)
	}
	b.Observe(nil, &limit.Request{Tenant: "a", Cost: 1})
	if n := b.Figures().Requests; n != 1 {
		t.Errorf("%d of one request are compared", n)
	}
}

// TestObserveAtOnce: many goroutines may observe while canaries begin and end.
func TestObserveAtOnce(t *testing.T) {
	b := newBench(t)
	b.Comparison.opts.Worse = func(Stats) {}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for j := range 2000 {
				b.Observe(nil, &limit.Request{Tenant: fmt.Sprint(i), Cost: 1})
				if j%500 == 0 {
					b.try(fmt.Sprintf("%d/s", 1+j/500), .1)
				}
			}
		})
	}
	wg.Wait()
	if f := b.Figures(); f.Version == "" || f.Requests == 0 {
		t.Errorf("the figures are %+v", f)
	}
}
