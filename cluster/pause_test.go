package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestPausedMaster: while a master stands still, checks that need only the
// others go on as if nothing was; where a pipeline needs all of them, the others
// decide their part of it, and the rest is left undecided at the deadline. What
// was sent to the sleeper and charged later is counted.
func TestPausedMaster(t *testing.T) { pausedMaster(t, corners[:1], 3) }

func pausedMaster(t *testing.T, ways []Options, pauses int) {
	t.Helper()
	const gross = 50 * time.Millisecond
	c := redistest.StartCluster(t, 3, 0)
	for _, opts := range ways {
		t.Run(wayName(opts), func(t *testing.T) {
			s := openWithOptions(t, opts, c.Addrs()...)
			third := func(i int) []string {
				return tenantsWhere(t, 6, func(slot int) bool { return slot*3/limit.NumHashSlots == i })
			}
			first, second, last := third(0), third(1), third(2)
			sleepers, others := first[:4], slices.Concat(second[:2], last[:2])
			apart := startLoad(t, s, 5*time.Second, slices.Concat(second[2:4], last[2:4])...)
			deadline := calmDeadline(startLoad(t, s, 5*time.Second, slices.Concat(first[4:], second[4:], last[4:])...))
			shared := startLoad(t, s, deadline, slices.Concat(sleepers, others)...)
			apart.advance(200 * loadPipeline)
			asleep := putToSleep(c.NodeForSlot(t, 0), apart, pauses, 2*deadline)
			for _, tenant := range sleepers { // until the store decides about them again
				shared.peek(limit.Request{Tenant: tenant, Op: "GET /a", Cost: 1})
			}
			judgePause(t, apart, shared, others)
			judgeTimes(t, "on other connections", apart.times, asleep, gross)
			calm := judgeTimes(t, "on the same connections", shared.times, asleep, deadline+gross)
			judgeUndecided(t, shared, others, sleepers, calm < deadline/2)
		})
	}
}

// breakerFailures is how many calls must fail for a breaker to open.
const breakerFailures = 10

// calmDeadline ends a load and returns a deadline that its checks meet by far: one that
// checks about a healthy master miss opens that master's breaker, as it should, and a
// machine may be too busy for any given one.
func calmDeadline(ld *load) time.Duration {
	ld.advance(100 * loadPipeline)
	ld.stop()
	return max(50*time.Millisecond, 4*ld.slowest())
}

// sleep is when a master stood still.
type sleep struct{ from, until time.Time }

// putToSleep makes a master stand still a few times, and returns when.
func putToSleep(sleeper *redistest.Node, ld *load, pauses int, pause time.Duration) (asleep []sleep) {
	for range pauses {
		from := time.Now()
		sleeper.Stop()
		<-time.After(pause)
		asleep = append(asleep, sleep{from, time.Now()})
		sleeper.Cont()
		ld.advance(100 * loadPipeline)
	}
	return asleep
}

// judgePause checks what was charged, and that on other connections nobody noticed. A
// machine that is too busy even for the deadline of the shared load may open the breakers of
// masters that are well, and those leave calls undecided on any connection.
func judgePause(t *testing.T, apart, shared *load, others []string) {
	t.Helper()
	charged, excess := apart.balance(), shared.balance()
	missed := 0
	for _, tenant := range others {
		missed += shared.backstop.of(tenant)
	}
	if n := apart.backstop.total(); charged != 0 || n != 0 && missed < breakerFailures {
		t.Errorf("on other connections: %d undecided, %d units too many lost", n, charged)
	}
	st := shared.store.Stats()
	if excess > st.RefundsLost {
		t.Errorf("the buckets have lost %d units more than were admitted, of which %d were counted", excess, st.RefundsLost)
	}
	t.Logf("on the same connections: %d units lost, at most %d counted", excess, st.RefundsLost)
}

// judgeUndecided compares how many calls were left undecided about the tenants
// of the sleeper and about those who live elsewhere. As many are asked about
// these as about those; but a busy machine may miss a deadline for either.
func judgeUndecided(t *testing.T, shared *load, others, sleepers []string, calm bool) {
	t.Helper()
	undecided, elsewhere := 0, 0
	for _, tenant := range sleepers {
		undecided += shared.backstop.of(tenant)
	}
	for _, tenant := range others {
		elsewhere += shared.backstop.of(tenant)
	}
	t.Logf("on the same connections: %d calls were left undecided, and %d about tenants who live elsewhere", undecided, elsewhere)
	if undecided == 0 {
		t.Error("no call was left undecided: the master did not stand still")
	}
	if calm && elsewhere > undecided/4 {
		t.Errorf("%d calls about tenants who live elsewhere were left undecided", elsewhere)
	}
}

// judgeTimes compares how long pipelines took that met a pause with the others
// of the run, and fails when their 99th percentile is grossly more. It returns that
// of the others.
func judgeTimes(t *testing.T, who string, times []pipelineTime, asleep []sleep, most time.Duration) time.Duration {
	t.Helper()
	var met, rest []time.Duration
	for _, p := range times {
		if slices.ContainsFunc(asleep, func(s sleep) bool { return p.began.Before(s.until) && p.began.Add(p.took).After(s.from) }) {
			met = append(met, p.took)
		} else {
			rest = append(rest, p.took)
		}
	}
	t.Logf("%s: %d pipelines met a pause, p50 %s, p99 %s, max %s; %d did not, p50 %s, p99 %s, max %s", who,
		len(met), quantile(met, 50), quantile(met, 99), quantile(met, 100), len(rest), quantile(rest, 50), quantile(rest, 99), quantile(rest, 100))
	// A machine that is slow without a pause may be as slow with it.
	if p99 := quantile(met, 99); p99 > most && p99 > 3*quantile(rest, 99) {
		t.Errorf("%s: the 99th percentile during a pause is %s, more than %s", who, p99, most)
	}
	if len(met) == 0 || len(rest) == 0 {
		t.Errorf("%s: %d pipelines met a pause, %d did not", who, len(met), len(rest))
	}
	return quantile(rest, 99)
}

func quantile(d []time.Duration, percent int) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[(len(d)-1)*percent/100].Round(time.Microsecond)
}
