package cluster

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// someTenants returns n tenants that no other test uses.
func someTenants(t *testing.T, n int) []string {
	return tenantsWhere(t, n, func(int) bool { return true })
}

// mastersOf returns a client of each master.
func mastersOf(t *testing.T, c *redistest.Cluster) []*redis.Client {
	t.Helper()
	var masters []*redis.Client
	for _, n := range c.Masters(t) {
		masters = append(masters, client(t, n.Addr))
	}
	return masters
}

// TestScriptFlushUnderLoad checks that repeated flushes of the script leave no call
// undecided and charge nothing twice.
func TestScriptFlushUnderLoad(t *testing.T) {
	eachWay(t, corners, func(t *testing.T, c *redistest.Cluster, opts Options) { scriptFlushes(t, c, opts, 25) })
}

func scriptFlushes(t *testing.T, c *redistest.Cluster, opts Options, flushes int) {
	t.Helper()
	masters := mastersOf(t, c)
	s := openWithOptions(t, opts, c.Addrs()...)
	ld := startLoad(t, s, 5*time.Second, someTenants(t, 12)...)
	for range flushes {
		for _, m := range masters {
			if err := m.ScriptFlush(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		ld.advance(4 * loadPipeline)
	}
	if excess := ld.balance(); excess != 0 {
		t.Errorf("the buckets have lost %d units more than were admitted", excess)
	}
	if n := ld.backstop.total(); n > 0 {
		t.Errorf("%d calls were left undecided: %+v", n, s.Stats())
	}
	if loads := s.Stats().ScriptLoads; loads < int64(flushes) {
		t.Errorf("the script was loaded %d times, the flushes came to nothing", loads)
	}
}

// TestConnectionsKilledUnderLoad closes connections again and again with calls in flight.
// It checks that all callers are answered in time, nothing is admitted twice, and the units
// of calls whose replies were lost are counted.
func TestConnectionsKilledUnderLoad(t *testing.T) {
	eachWay(t, corners, func(t *testing.T, c *redistest.Cluster, opts Options) { connectionsKilled(t, c, opts, 60) })
}

func connectionsKilled(t *testing.T, c *redistest.Cluster, opts Options, kills int) {
	t.Helper()
	const deadline = 2 * time.Second
	masters := mastersOf(t, c)
	s := openWithOptions(t, opts, c.Addrs()...)
	ld := startLoad(t, s, deadline, someTenants(t, 12)...)
	for i := range kills {
		if err := masters[i%len(masters)].Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err(); err != nil {
			t.Fatal(err)
		}
		ld.advance(8 * loadPipeline)
	}
	redistest.Eventually(t, 10*time.Second, "the breakers to close", func() bool { return !s.anyOpen() })
	excess, slowest := ld.balance(), ld.slowest()
	st := s.Stats()
	t.Logf("%d checks, %d undecided: %d units lost, at most %d counted; the slowest pipeline took %s",
		ld.checks.Load(), ld.backstop.total(), excess, st.RefundsLost, slowest)
	if st.Undecided[KindNetwork] == 0 {
		t.Error("no call was on its way when its connection was killed")
	}
	if most := loadBuckets * st.Undecided[KindNetwork]; excess > st.RefundsLost || st.RefundsLost > most {
		t.Errorf("the buckets have lost %d units more than were admitted, of which %d were counted, which may be %d", excess, st.RefundsLost, most)
	}
	if slowest > deadline+time.Second { // a busy machine may be late
		t.Errorf("a pipeline took %s, its deadline is %s", slowest, deadline)
	}
}
