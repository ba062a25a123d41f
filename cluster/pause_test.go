package cluster

import (
	"slices"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestPausedMaster checks that checks which need only the other masters are not affected
// while one is paused. If a pipeline needs all of them, the others decide their part, and
// the rest stays undecided at the deadline. Units that were charged after the deadline are
// counted.
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
			for _, tenant := range sleepers { // until the store decides their checks again
				shared.peek(limit.Request{Tenant: tenant, Op: "GET /a", Cost: 1})
			}
			checkPause(t, apart, shared, others)
			checkTimes(t, "on other connections", apart.times, asleep, gross)
			calm := checkTimes(t, "on the same connections", shared.times, asleep, deadline+gross)
			checkUndecided(t, shared, others, sleepers, calm < deadline/2)
		})
	}
}

// breakerFailures is the number of failed calls that opens a breaker.
const breakerFailures = 10

// calmDeadline stops a load and returns a deadline that its checks meet easily: missed
// deadlines on a healthy master open its breaker, as they should, and on a busy machine any
// fixed deadline may be missed.
func calmDeadline(ld *load) time.Duration {
	ld.advance(100 * loadPipeline)
	ld.stop()
	return max(50*time.Millisecond, 4*ld.slowest())
}

// sleep is a time span in which a master was paused.
type sleep struct{ from, until time.Time }

// putToSleep pauses a master a few times, and returns the time spans.
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

// checkPause checks the charged units, and that callers on other connections were not
// affected. If the machine is too busy even for the deadline of the shared load, the
// breakers of healthy masters may open, and calls on any connection stay undecided.
func checkPause(t *testing.T, apart, shared *load, others []string) {
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

// checkUndecided compares the numbers of undecided calls of the paused master's tenants and
// of the others. Both groups have the same number of calls, but a busy machine may miss a
// deadline for either.
func checkUndecided(t *testing.T, shared *load, others, sleepers []string, calm bool) {
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

// checkTimes compares the durations of pipelines during a pause with the other durations of
// the run. It fails if their 99th percentile is grossly higher. It returns that of the
// others.
func checkTimes(t *testing.T, who string, times []pipelineTime, asleep []sleep, most time.Duration) time.Duration {
	t.Helper()
	var met, rest []time.Duration
	for _, p := range times {
		if slices.ContainsFunc(asleep, func(s sleep) bool { return p.began.Before(s.until) && p.began.Add(p.took).After(s.from) }) {
			met = append(met, p.took)
		} else {
			rest = append(rest, p.took)
		}
	}
	t.Logf("%s: %d pipelines overlapped a pause, p50 %s, p99 %s, max %s; %d did not, p50 %s, p99 %s, max %s", who,
		len(met), quantile(met, 50), quantile(met, 99), quantile(met, 100), len(rest), quantile(rest, 50), quantile(rest, 99), quantile(rest, 100))
	// A machine that is slow without a pause may be equally slow with it.
	if p99 := quantile(met, 99); p99 > most && p99 > 3*quantile(rest, 99) {
		t.Errorf("%s: the 99th percentile during a pause is %s, more than %s", who, p99, most)
	}
	if len(met) == 0 || len(rest) == 0 {
		t.Errorf("%s: %d pipelines overlapped a pause, %d did not", who, len(met), len(rest))
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
