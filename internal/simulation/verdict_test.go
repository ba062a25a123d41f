package simulation

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/limit"
)

// untilNormal bounds the time from the return of a shard until all breakers are closed,
// in microseconds: a probe that was sent just before fails at its deadline, a refund only
// when its connection is given up; the pause follows, and up to one and a half paces
// until the next request.
const untilNormal = ioTime + decisionTime + int64(breaker.DefaultCooldown/time.Microsecond)*6/5 + int64(pace/time.Microsecond)*3/2 + 4*halfTrip

// hurts reports whether a tenant's shard is affected by the fault.
func (s *scenario) hurts(t *tenant) bool { return s.begin != nil && (s.all || t.shard == hurt) }

// check checks the guarantees of a run.
func (s *scenario) check(t *testing.T, f *fleet) {
	t.Helper()
	for _, tenant := range f.tenants {
		if s.hurts(tenant) {
			s.checkHurt(t, f, tenant)
		} else {
			checkSpared(t, f, tenant)
		}
		if tenant.kind == wide && tenant.denied > 0 {
			t.Errorf("%s has more than it asks for, and was denied %d times", tenant.name, tenant.denied)
		}
	}
	if s.begin == nil {
		if f.opened > 0 {
			t.Errorf("breakers opened %d times for nothing", f.opened)
		}
		return
	}
	if n, _ := f.recovery().shape(); float64(n) > mostProbes || n == 0 {
		t.Errorf("%d probes in 10 ms, the bound is %v", n, mostProbes)
	}
	if took := f.lastClosed - f.back; f.open > 0 || took > untilNormal {
		t.Errorf("%d breakers are open, the last was closed %s after the return, the bound is %s", f.open, seconds(took), seconds(untilNormal))
	}
	if took := f.lastBackstop - f.back; took > untilNormal || f.lastBackstop < f.broke {
		t.Errorf("the backstop decided %s after the return, the bound is %s", seconds(took), seconds(untilNormal))
	}
}

// checkHurt compares a tenant of a hurt shard with its limit: the units that the store
// admitted, alone; those of the backstops, times the possible error of the count; and
// both together with the ceiling.
func (s *scenario) checkHurt(t *testing.T, f *fleet, tenant *tenant) {
	t.Helper()
	capacity := float64(tenant.params.Capacity)
	// The units of the last writes of the primary are admitted once more, with those that
	// leases took then: two units for each check. Beyond that a lease adds nothing: the
	// bucket is never nearly full, so that no refill is lost while units are held
	// elsewhere.
	slack := 3 * float64(tenant.admitted.between(f.broke-lag, f.broke))
	if n := tenant.burst(tenant.exact(), 1); n > capacity+slack {
		t.Errorf("%s: the store admitted a burst of %.0f, the limit is %.0f and %.0f may be lost", tenant.name, n, capacity, slack)
	}
	times := max(1, s.times)
	if n := tenant.burst(tenant.local, times); n > times*capacity {
		t.Errorf("%s: the backstops admitted a burst of %.0f, beyond %v times a limit of %.0f", tenant.name, n, times, capacity)
	}
	// While the backstops decide, the store's own buckets refill: both count.
	if n := max(tenant.overall(f.end), tenant.worst(f.broke)); n > min(1+times, ceiling+1) {
		t.Errorf("%s: %.2f times the limit was admitted", tenant.name, n)
	}
}

// checkSpared compares a tenant of any other shard with its result without a fault.
func checkSpared(t *testing.T, f *fleet, tenant *tenant) {
	t.Helper()
	if n := tenant.sources[limit.SourceBackstop]; n > 0 {
		t.Errorf("%s: %d decisions by the backstop, on a shard that is well", tenant.name, n)
	}
	if n := tenant.burst(tenant.admitted, 1); n > float64(tenant.params.Capacity) {
		t.Errorf("%s: a burst of %.0f was admitted, the limit is %d", tenant.name, n, tenant.params.Capacity)
	}
	if part := tenant.pace(f.broke, f.end); tenant.kind == tight && part < 0.98 {
		t.Errorf("%s: only %.3f of its rate was admitted, and twice as much was asked for", tenant.name, part)
	}
}

// headFleet is the head of the table of scenarios.
var headFleet = []string{
	"what happens", "hurt: of the limit", "worst second", "of the rate, in the outage",
	"others: of the limit", "worst second", "probes in 10 ms: most", "mean", "breakers closed", "backstop silent",
}

// row returns the row of a run in the table.
func (s *scenario) row(f *fleet) []string {
	hurts := func(t *tenant) bool { return t.kind != wide && s.hurts(t) }
	spared := func(t *tenant) bool { return t.kind != wide && !s.hurts(t) }
	overall := func(t *tenant) float64 { return t.overall(f.end) }
	worst := func(t *tenant) float64 { return t.worst(f.broke) }
	shape := func(n float64) string {
		if n == 0 {
			return "-"
		}
		return fmt.Sprintf("%.2f", n)
	}
	row := []string{
		s.name, shape(f.most(hurts, overall)), shape(f.most(hurts, worst)), shape(f.tenants[0].pace(f.broke, f.back)),
		shape(f.most(spared, overall)), shape(f.most(spared, worst)),
	}
	if s.begin == nil {
		return append(row, "-", "-", "-", "-")
	}
	most, mean := f.recovery().shape()
	return append(row, fmt.Sprint(most), fmt.Sprintf("%.1f", mean), seconds(f.lastClosed-f.back), seconds(f.lastBackstop-f.back))
}
