package simulation

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/internal/instances"
	"github.com/limitgate/limitgate/internal/storetest"
)

// TestFleetOfAnySeed runs a scenario that its seed chooses; the page always uses the same
// seed.
func TestFleetOfAnySeed(t *testing.T) {
	seed := storetest.Seed(t)
	s := &scenarios[seed%uint64(len(scenarios))]
	t.Log(s.name)
	s.check(t, play(t, s, seed))
}

// fleetTable runs all scenarios, checks them and returns the table.
func fleetTable(t *testing.T, seed uint64) table {
	t.Helper()
	out := table{headFleet}
	for i := range scenarios {
		s := &scenarios[i]
		t.Run(s.name, func(t *testing.T) {
			f := play(t, s, seed)
			s.check(t, f)
			out.row(s.row(f)...)
		})
	}
	return out
}

// TestTheCountMatters: a ceiling that does not hold is detected.
func TestTheCountMatters(t *testing.T) {
	if n := instances.Bounded(1, proxyCount, ceiling); n != 167 { // 166 would be a share of 3.01 times
		t.Errorf("1 of %d counted: %d share, want 167", proxyCount, n)
	}
	if n := instances.Bounded(2*proxyCount, proxyCount, ceiling); n != 2*proxyCount {
		t.Errorf("twice as many counted: %d share", n)
	}
}

// TestBurst: the units admitted beyond a rate in any span of time.
func TestBurst(t *testing.T) {
	tenant := &tenant{}
	tenant.params.Count, tenant.params.Period, tenant.params.Capacity = 100, second, 10 // 1 in a bin
	for admitted, want := range map[string]float64{
		"1111111111": 0, "A0000000001": 9, "A0000000002": 9, "20202020": 1, "0A0A": 17, "2222": 4,
	} {
		var h histogram
		for bin, n := range admitted {
			if n -= '0'; n > 9 {
				n = 10
			}
			h.addMany(int64(bin)*binTime, int(n))
		}
		if got := tenant.burst(h, 1); got != want {
			t.Errorf("%s: a burst of %v, want %v", admitted, got, want)
		}
	}
}

// TestFailOverLosesTheLastWrites: a failover loses the writes of the last lag and no
// others.
func TestFailOverLosesTheLastWrites(t *testing.T) {
	set := storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "10/366d"})
	s := newShard()
	for at := int64(0); at < 4*lag; at += lag / 2 {
		it := itemOf(set, "t")
		s.take(&it, 0, at)
	}
	s.failOver(4 * lag) // the writes at 3 and 3.5 times lag are lost
	it := itemOf(set, "t")
	if s.take(&it, 0, 4*lag); it.Remaining != 10-6-1 {
		t.Errorf("%d are left, want 3: %s", it.Remaining, fmt.Sprint(s.buckets))
	}
}
