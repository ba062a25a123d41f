//go:build long

package integration

import (
	"testing"
	"time"
)

const (
	// slack is how much a tenant may get beyond its burst and its rate: the ends of the
	// run are measured by the clients, not by the store.
	slack = 1
	// patient is a --decision-timeout that no check of a healthy store exceeds.
	patient = 2 * time.Second
	// slowest bounds the p99 of a shard that another shard does not slow down: the
	// machine is busy.
	slowest = 10 * time.Millisecond
)

// darkShard is a fault in which a master and its replica are gone.
var darkShard = fault{
	name: "a primary and its replica, dark", lasts: 4 * time.Second, timeout: patient,
	emptied: func(shard int, _ bool) bool { return shard == 0 },
	make: func(_ *testing.T, s *scene) {
		s.Nodes[shards].Kill()
		s.Nodes[0].Kill()
	},
	heal: func(t *testing.T, s *scene) {
		s.Nodes[0].Restart()
		s.Nodes[shards].Restart()
		s.WaitHealthy(t)
	},
	also: func(t *testing.T, o *outcome) {
		o.checkDark(t)
		if o.fault.coverage {
			return // then all shards are dark
		}
		lit := func(s *sample) bool { return o.scene.FirstOwner(s.slot()) != 0 }
		o.checkExact(t, lit)
		before, during := o.unstalled(o.begin(), o.made, lit), o.unstalled(o.made, o.healed, lit)
		o.note("checks of the other shards took ms p50 / p99 / p99.9 / max %s before and %s during, the machine's stalls aside",
			milliseconds(before, 0.5, 0.99, 0.999, 1), milliseconds(during, 0.5, 0.99, 0.999, 1))
		if got, was := at(during, 0.99), at(before, 0.99); got > max(slowest, was*3/2) {
			t.Errorf("p99 of the other shards is %s while one is dark, it was %s before", got, was)
		}
	},
}

// unstalled is like between, without the time during which the machine was stalled.
func (o *outcome) unstalled(from, to time.Time, pass func(s *sample) bool) []time.Duration {
	return o.times(from, to, pass, o.stalls)
}

// checkDark fails the test if the dark shard did not stay dark: then the run proves
// nothing.
func (o *outcome) checkDark(t *testing.T) {
	t.Helper()
	stored := o.count(func(s *sample) bool {
		return o.scene.FirstOwner(s.slot()) == 0 && s.source == "store" && s.at.After(o.made.Add(time.Second)) &&
			s.end().Before(o.made.Add(o.fault.lasts))
	})
	if stored > 0 {
		t.Errorf("%d checks of the dark shard were decided by a store", stored)
	}
}

// checkExact fails the test unless the limits of the samples that pass were enforced to
// the unit, and only by the store.
func (o *outcome) checkExact(t *testing.T, pass func(s *sample) bool) {
	t.Helper()
	admitted, all, without := map[string]int{}, 0, 0
	for i := range o.samples {
		s := &o.samples[i]
		if !pass(s) {
			continue
		}
		all++
		if s.degraded() {
			without++
		} else if s.op == opTight && s.allowed {
			admitted[s.tenant]++
		}
	}
	if without > 0 || len(admitted) == 0 {
		t.Errorf("%d of %d checks were decided without the store that they could reach: %s", without, all,
			o.first(func(s *sample) bool { return pass(s) && s.degraded() }))
	}
	allowed, most := tightRate*(1+o.seconds()), 0
	for tenant, n := range admitted {
		most = max(most, n)
		if float64(n) > allowed+slack {
			t.Errorf("the store admitted %d of %s, which allows %.1f", n, tenant, allowed)
		}
	}
	o.note("%d of %d checks that could reach the store were decided without it; of %d tenants, the store admitted %d at most, each allows %.1f",
		without, all, len(admitted), most, allowed)
}

const stepBack = 10 * time.Second

// clockStep sets the store's clock back, and does not correct it.
var clockStep = fault{
	name: "the store's clock steps back 10 s", clocked: true, timeout: patient,
	make: func(t *testing.T, s *scene) {
		s.clock.Step(-stepBack)
		for _, n := range s.Nodes {
			if off := time.Until(n.Time(t)) + stepBack; off.Abs() > time.Second {
				t.Errorf("the clock of %s is off by %s after the step", n.Addr, off-stepBack)
			}
		}
	},
	heal: nothing,
	also: func(t *testing.T, o *outcome) {
		o.checkExact(t, anySample) // the step creates no units
		after := o.end().Sub(o.made).Seconds()
		asked := o.count(func(s *sample) bool { return s.op == opTight && s.at.After(o.made) })
		got := o.count(func(s *sample) bool { return s.op == opTight && s.allowed && s.at.After(o.made) })
		earned := tightTenants * tightRate * after
		o.note("in the %.1f s after the step tight limits admitted %d of %d and earned %.0f", after, got, asked, earned)
		if float64(got) < 0.8*min(earned, float64(asked)) { // a slow machine requests less than was earned
			t.Errorf("tight limits admitted %d of %d after the step and earned %.0f", got, asked, earned)
		}
	},
}
