package simulation

import (
	"testing"
	"testing/synctest"
)

const (
	second = 1_000_000 // in microseconds
	// broke is the start of the fault: by then buckets are empty, and leases are in use.
	broke = 3 * second
	// slowest is the maximum of the additional travel time of a call while the store is
	// slow.
	slowest = 20_000
)

// scenario is a fault of a fleet, at broke.
type scenario struct {
	name string
	// outage is how long the store is faulty; the run goes on for 3 s after that.
	outage int64
	// all means that all shards are hurt, and not one.
	all bool
	// cost is the cost of each request: tight tenants request twice their rate in units
	// of it.
	cost int64
	// times is how many times the limit the backstops may admit together, because the
	// source of the number of instances may be wrong.
	times float64
	// begin schedules the fault; nil if there is none.
	begin func(f *fleet, s *scenario)
}

var scenarios = []scenario{
	{name: "nothing", outage: 3 * second},
	{name: "one primary dies; its replica, 50 ms behind, follows after 2 s", outage: 2 * second, begin: failOver},
	{name: "one shard is dark for 10 s", outage: 10 * second, begin: goDark},
	{name: "all are dark for 6 s", outage: 6 * second, all: true, begin: goDark},
	{name: "- half of the proxies die, and are still counted", outage: 6 * second, all: true, begin: func(f *fleet, s *scenario) {
		goDark(f, s)
		f.add(broke+2*second, f.halve)
	}},
	{name: "- half of the proxies die, and are no longer counted", outage: 6 * second, all: true, begin: func(f *fleet, s *scenario) {
		goDark(f, s)
		f.add(broke+2*second, func() { f.halve(); f.counted = proxyCount / 2 })
	}},
	{name: "- no proxy dies, 1 is counted, 8 times the rate is asked for", outage: 6 * second, all: true, cost: 4, times: ceiling, begin: func(f *fleet, s *scenario) {
		goDark(f, s)
		f.add(broke, func() { f.counted = 1 })
		f.add(broke+s.outage, func() { f.counted = proxyCount })
	}},
	{name: "all proxies start anew; the store is slow for 1 s", outage: second, all: true, begin: func(f *fleet, s *scenario) {
		f.add(broke, func() {
			f.slowUntil = broke + s.outage
			f.restart()
		})
	}},
}

// play runs a scenario.
func play(t *testing.T, s *scenario, seed uint64) (f *fleet) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f = newFleet(t, seed)
		f.cost = max(1, s.cost)
		f.broke, f.back, f.end = broke, broke+s.outage, broke+s.outage+3*second
		f.beginTraffic()
		if s.begin != nil {
			s.begin(f, s)
		}
		f.run()
	})
	return f
}

// failOver kills the primary of the hurt shard.
func failOver(f *fleet, s *scenario) {
	f.add(broke, func() { f.shards[hurt].health = killed })
	f.add(broke+s.outage, func() { f.shards[hurt].failOver(broke) })
}

// goDark cuts shards off, and connects them again.
func goDark(f *fleet, s *scenario) {
	to := func(h health) func() {
		return func() {
			for i, shard := range f.shards {
				if i == hurt || s.all {
					shard.health = h
				}
			}
		}
	}
	f.add(broke, to(dark))
	f.add(broke+s.outage, to(well))
}

// halve kills every other proxy.
func (f *fleet) halve() {
	for i := 0; i < len(f.proxies); i += 2 {
		f.proxies[i].kill()
	}
}

// restart kills every proxy, and starts another in its place.
func (f *fleet) restart() {
	for i, p := range f.proxies {
		p.kill()
		f.proxies[i] = f.start()
	}
}
