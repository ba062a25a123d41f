package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/limitgate/limitgate/internal/load"
	"github.com/limitgate/limitgate/internal/servers"
)

// The buckets of the case, and the load on each. A burst lasts four seconds, so that the
// part of it that proxies hold is visible.
const (
	driftRate  = 500
	driftBurst = 2000
	// driftProxies share the limits; each bucket has as many connections.
	driftProxies = 3
)

// driftPlans are the limits whose grants are compared with the limit.
var driftPlans = []struct{ name, title, lease string }{
	{"exact", "exact", ""},
	{"ten", "lease of 10", "{size: 10, ttl: 2s}"},
	{"auto", "lease of measured size", "auto"},
}

// bucketWays are the ways in which the connections of a bucket are distributed.
var bucketWays = []string{"through all proxies", "through one proxy"}

// driftBucket is one bucket: the number of its tenant is its index.
type driftBucket struct {
	plan int
	way  int
	// replies are all replies, granted the units granted, leased those granted from
	// leases.
	replies, granted, leased int64
	// drift is the drift at the end of the last rush, most the maximum so far.
	drift, most float64
}

// through returns the proxy of one of the bucket's connections.
func (b *driftBucket) through(conn int) int {
	if b.way == 0 {
		return conn % driftProxies
	}
	return b.plan % driftProxies
}

func driftCases() []Case {
	return []Case{{
		Name: "drift", Title: "drift of limits with and without leases, in a minute",
		About: "Three proxies on the cluster, and buckets of 500 units a second and a burst of 2,000. Rushes demand three times " +
			"the rate, and lulls between them half of it, so that buckets are often empty and never full. Three connections check each " +
			"bucket, one to each proxy or all to one. Drift compares the granted units with the bucket's burst and its rate for the " +
			"elapsed time by the clients' clock. Above zero, too much was admitted. Units that proxies hold unused are missing.",
		run: runDrift,
	}}
}

// driftPhase is a time in which buckets are requested at a multiple of their rate.
type driftPhase struct {
	length time.Duration
	times  float64
}

// driftPhases begin and end with a rush.
func (l *lab) driftPhases() []driftPhase {
	rush, lull := driftPhase{4 * time.Second, 3}, driftPhase{3 * time.Second, 0.5}
	turns := 8
	if l.settings.Quick {
		rush.length, lull.length, turns = 2500*time.Millisecond, time.Second, 1
	}
	phases := []driftPhase{rush}
	for range turns {
		phases = append(phases, lull, rush)
	}
	return phases
}

// driftLimits is a limits file with a plan for each kind, and a tenant for each bucket.
func driftLimits(buckets []driftBucket) string {
	var text strings.Builder
	text.WriteString("version: 1\nplans:\n")
	for _, p := range driftPlans {
		lease := ""
		if p.lease != "" {
			lease = ", lease: " + p.lease
		}
		fmt.Fprintf(&text, "  %s:\n    - {id: tenant, by: [tenant], rate: %d/s, burst: %d, on_error: open%s}\n",
			p.name, driftRate, driftBurst, lease)
	}
	text.WriteString("tenants:\n")
	for i, b := range buckets {
		fmt.Fprintf(&text, "  %s: {plan: %s}\n", load.Fill(tenantWord, uint32(i)), driftPlans[b.plan].name)
	}
	return text.String()
}

func runDrift(ctx context.Context, l *lab) (_ *Result, err error) {
	store, err := l.clustered(ctx)
	if err != nil {
		return nil, err
	}
	var buckets []driftBucket
	for way := range bucketWays {
		for plan := range driftPlans {
			buckets = append(buckets, driftBucket{plan: plan, way: way, most: math.Inf(-1)})
		}
	}
	var proxies []*servers.Limitgate
	defer func() {
		for _, p := range proxies {
			err = errors.Join(err, p.Close())
		}
	}()
	costs := parts{client: self(), store: store.pids()}
	for range driftProxies {
		p, err := l.start(driftLimits(buckets), store, append(patience, "--instances", fmt.Sprint(driftProxies))...)
		if err != nil {
			return nil, err
		}
		proxies, costs.proxy = append(proxies, p), append(costs.proxy, p.PID())
	}
	var targets []load.Target
	for i := range buckets {
		for conn := range driftProxies {
			targets = append(targets, load.Target{Addr: proxies[buckets[i].through(conn)].Addr, Conns: 1, Keys: load.Hot(uint32(i))})
		}
	}
	generator, err := load.Dial(load.Options{Targets: targets, Request: gate{}.request(), Shape: load.Decision, Pipeline: 1})
	if err != nil {
		return nil, err
	}
	defer generator.Close()
	m, err := startMeter(costs)
	if err != nil {
		return nil, err
	}
	if err := rushAndLull(ctx, l, generator, buckets); err != nil {
		return nil, err
	}
	s := new(sample)
	r := driftResult(buckets, s)
	err = m.stop(s)
	r.Others = s.others
	return r, err
}

// rushAndLull runs the phases and counts the units that the buckets grant.
func rushAndLull(ctx context.Context, l *lab, generator *load.Generator, buckets []driftBucket) error {
	started := time.Now()
	for i, phase := range l.driftPhases() {
		l.say("asking %g times the rate", phase.times)
		before := time.Since(started)
		o, err := generator.Run(ctx, load.Load{
			Duration: phase.length, Rate: phase.times * driftRate * float64(len(buckets)), ByTarget: true,
		})
		if err != nil {
			return err
		}
		if n := o.Errors + o.From("backstop"); n > 0 {
			return fmt.Errorf("check replies: %d of %d were errors or made without the store (%s)", n, o.Replies, o.FirstError)
		}
		for j := range o.Targets {
			buckets[j/driftProxies].count(&o.Targets[j].Tally)
		}
		if i%2 == 1 { // buckets are not empty after a lull
			continue
		}
		for j := range buckets {
			buckets[j].end(before + o.Elapsed)
		}
	}
	return nil
}

// count adds the replies on one of the bucket's connections.
func (b *driftBucket) count(t *load.Tally) {
	b.replies += t.Replies
	b.granted += t.Admitted
	b.leased += t.From("lease")
}

// end records the drift at the end of a rush, elapsed after the first request.
func (b *driftBucket) end(elapsed time.Duration) {
	b.drift = drift(b.granted, elapsed)
	b.most = max(b.most, b.drift)
}

// drift is how much more was granted than the bucket's burst and refill, in percent.
func drift(granted int64, elapsed time.Duration) float64 {
	exact := driftBurst + driftRate*elapsed.Seconds()
	return 100 * (float64(granted) - exact) / exact
}

// The goals in percent: limits without a lease must be exact except for the requests in
// flight.
const (
	exactDrift = 0.1
	goalDrift  = 1
	worstDrift = 5
)

func driftResult(buckets []driftBucket, s *sample) *Result {
	r := new(Result)
	most := math.Inf(-1)
	for i := range buckets {
		b := &buckets[i]
		plan := driftPlans[b.plan]
		goal := within(goalDrift)
		if plan.lease == "" {
			goal = within(exactDrift)
		}
		name := plan.title + ", " + bucketWays[b.way]
		r.Figures = append(r.Figures, Figure{Name: name + ": drift", Unit: Percent, Value: once(b.drift), Goal: goal}.judge())
		if plan.lease != "" {
			r.Figures = append(r.Figures, Figure{
				Name: name + ": granted from leases", Unit: Percent, Value: once(100 * float64(b.leased) / float64(b.granted)),
			})
		}
		most = max(most, b.most)
		s.decisions += b.replies
	}
	r.Figures = append(r.Figures, Figure{
		Name: "highest drift at the end of any rush", Unit: Percent, Value: once(most), Goal: atMost(worstDrift),
	}.judge())
	return r
}
