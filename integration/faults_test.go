package integration

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// faultLimits are a limit that never denies rightly, and one that is asked for more
// than it gives.
const (
	tightRate   = 20 // units a second, and the burst
	faultLimits = `
version: 1
default_plan: p
plans:
  p:
    - {id: wide, by: [tenant], when: {op: wide}, rate: 1000000/s, on_error: open}
    - {id: tight, by: [tenant], when: {op: tight}, rate: 20/s, burst: 20, on_error: open}
`
	proxies      = 3
	callers      = 4                      // on each proxy
	callPause    = 4 * time.Millisecond   // between two checks of a caller
	wideTenants  = 200                    // spread over all slots
	tightTenants = 20                     // each asked for about twice of what it has
	faultTimeout = 5 * time.Millisecond   // the proxies' --decision-timeout, the default
	calm         = 250 * time.Millisecond // how long all must be decided by the store to be normal
	ceiling      = 3                      // of what may be admitted without the store
)

// sample is what one check got.
type sample struct {
	at              time.Time
	took            time.Duration
	tight, allowed  bool
	source, problem string
}

// barrage asks proxies until it is stopped.
type barrage struct {
	stop    chan struct{}
	wg      sync.WaitGroup
	mu      sync.Mutex // guards samples
	samples []sample
}

// startBarrage starts callers on each proxy.
func startBarrage(proxies []*proxy) *barrage {
	b := &barrage{stop: make(chan struct{})}
	for i, p := range proxies {
		for j := range callers {
			c := p.client()
			b.wg.Go(func() { b.call(c, rand.New(rand.NewPCG(uint64(i), uint64(j)))) })
		}
	}
	return b
}

func (b *barrage) call(c *redis.Client, random *rand.Rand) {
	tick := time.NewTicker(callPause)
	defer tick.Stop()
	var own []sample
	for n := 0; ; n++ {
		select {
		case <-b.stop:
			b.mu.Lock()
			b.samples = append(b.samples, own...)
			b.mu.Unlock()
			return
		case <-tick.C:
		}
		s := sample{at: time.Now(), tight: n%4 == 0}
		tenant, op := fmt.Sprint("w", random.IntN(wideTenants)), "wide"
		if s.tight {
			tenant, op = fmt.Sprint("t", random.IntN(tightTenants)), "tight"
		}
		v, err := check(c, tenant, op, "-")
		s.took, s.allowed, s.source = time.Since(s.at), v.allowed, v.source
		if err != nil {
			s.problem = err.Error()
		}
		own = append(own, s)
	}
}

// end stops the callers and returns what they got, by time.
func (b *barrage) end() []sample {
	close(b.stop)
	b.wg.Wait()
	slices.SortFunc(b.samples, func(x, y sample) int { return x.at.Compare(y.at) })
	return b.samples
}

// fault breaks something and mends it.
type fault struct {
	name string
	// lasts is how long it is left broken.
	lasts time.Duration
	// coverage is cluster-require-full-coverage.
	coverage bool
	make     func(t *testing.T, c *redistest.Cluster)
	heal     func(t *testing.T, c *redistest.Cluster)
}

// outcome is what a run with a fault came to.
type outcome struct {
	samples          []sample
	made, healed, ok time.Time // ok is since when all is normal
}

// runFault makes a fault under load.
func runFault(t *testing.T, f fault) *outcome {
	t.Helper()
	coverage := "no"
	if f.coverage {
		coverage = "yes"
	}
	c := redistest.StartCluster(t, 3, 1, "--cluster-node-timeout", "1000", "--cluster-require-full-coverage", coverage)
	limits := writeLimits(t, faultLimits)
	var all []*proxy
	for range proxies {
		all = append(all, serve(t, limits, "--redis", c.Nodes[0].Addr+","+c.Nodes[1].Addr+","+c.Nodes[2].Addr,
			"--instances", fmt.Sprint(proxies), "--decision-timeout", faultTimeout.String(), "--deny-cache-size", "0"))
	}
	b := startBarrage(all)
	pause(2 * time.Second)
	o := &outcome{made: time.Now()}
	f.make(t, c)
	pause(f.lasts)
	f.heal(t, c)
	o.healed = time.Now()
	normal := func() bool {
		m := ""
		for _, p := range all {
			m += p.get("/readyz")
		}
		return !strings.Contains(m, `"breaker":"open"`) && !strings.Contains(m, `"breaker":"half_open"`)
	}
	eventually(t, "every breaker is closed", normal)
	pause(3 * time.Second)
	o.samples = b.end()
	o.ok = normalSince(o.samples, o.made)
	return o
}

// normalSince returns the end of the last window in which more than one check in a
// hundred was decided without the store: on a busy machine one is now and then.
func normalSince(samples []sample, from time.Time) time.Time {
	all, without := map[int64]int{}, map[int64]int{}
	for _, s := range samples {
		if s.at.Before(from) {
			continue
		}
		window := int64(s.at.Sub(from) / calm)
		all[window]++
		if s.source == "backstop" {
			without[window]++
		}
	}
	last := from
	for window, n := range without {
		if end := from.Add(time.Duration((window + 1) * int64(calm))); n*100 > all[window] && end.After(last) {
			last = end
		}
	}
	return last
}

// pause waits: a fault lasts as long as it lasts.
func pause(d time.Duration) { <-time.After(d) }

// latencies returns p50, p99 and the maximum of samples between two instants.
func latencies(samples []sample, from, to time.Time) string {
	var took []time.Duration
	for _, s := range samples {
		if !s.at.Before(from) && s.at.Before(to) {
			took = append(took, s.took)
		}
	}
	if len(took) == 0 {
		return "-"
	}
	slices.SortFunc(took, cmp.Compare)
	at := func(q float64) float64 { return took[int(q*float64(len(took)-1))].Seconds() * 1e3 }
	return fmt.Sprintf("%.1f/%.1f/%.1f", at(0.5), at(0.99), at(1))
}

// report prints the line of a run, and fails the test where a promise is broken.
func (o *outcome) report(t *testing.T, name string) {
	t.Helper()
	problems, wrong, admitted, without := 0, 0, 0, 0
	first := ""
	for _, s := range o.samples {
		switch {
		case s.problem != "":
			problems++
			first = cmp.Or(first, s.problem)
		case !s.tight && !s.allowed:
			wrong++
		case s.tight && s.allowed:
			admitted++
		}
		if s.source == "backstop" {
			without++
		}
	}
	begin, end := o.samples[0].at, o.samples[len(o.samples)-1].at
	allowed := tightTenants * tightRate * (1 + end.Sub(begin).Seconds())
	t.Logf("%-34s %6d checks %4d errors %4d wrong denials %6d without the store  admitted/allowed %.2f  ms p50/p99/max before %s during %s after %s  normal %.1f s after the mending",
		name, len(o.samples), problems, wrong, without, float64(admitted)/allowed,
		latencies(o.samples, begin, o.made), latencies(o.samples, o.made, o.healed), latencies(o.samples, maxTime(o.ok, o.healed), end),
		max(0, o.ok.Sub(o.healed).Seconds()))
	if problems > 0 {
		t.Errorf("%s: %d errors, the first: %s", name, problems, first)
	}
	if wrong > 0 {
		t.Errorf("%s: %d wrong denials of open limits", name, wrong)
	}
	if float64(admitted) > ceiling*allowed {
		t.Errorf("%s: %d admitted of %.0f", name, admitted, allowed)
	}
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// nothing is a heal for what mends itself.
func nothing(*testing.T, *redistest.Cluster) {}

// hang is a master that hangs and comes back.
var hang = fault{
	name: "SIGSTOP a primary, wake it", lasts: 600 * time.Millisecond,
	make: func(_ *testing.T, c *redistest.Cluster) { c.Nodes[0].Stop() },
	heal: func(_ *testing.T, c *redistest.Cluster) { c.Nodes[0].Cont() },
}

// die is a master that is gone: its replica takes over.
var die = fault{
	name: "kill -9 a primary", lasts: 5 * time.Second,
	make: func(_ *testing.T, c *redistest.Cluster) { c.Nodes[0].Kill() },
	heal: nothing,
}

// TestFaults is the quick part of the fault suite: `make faults` runs all of it.
func TestFaults(t *testing.T) {
	for _, f := range []fault{hang, die} {
		t.Run(f.name, func(t *testing.T) { runFault(t, f).report(t, f.name) })
	}
}
