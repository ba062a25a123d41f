package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// someTenants returns names of tenants that only this test has.
func someTenants(t *testing.T, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s-%d", t.Name(), i)
	}
	return names
}

// TestScriptFlushUnderLoad: a store that forgets the script again and again
// leaves nothing undecided for it, and charges nothing twice.
func TestScriptFlushUnderLoad(t *testing.T) {
	const flushes = 60
	c := redistest.SharedCluster(t)
	var masters []*redis.Client
	for _, n := range c.Masters(t) {
		masters = append(masters, client(t, n.Addr))
	}
	for _, opts := range ways {
		t.Run(fmt.Sprintf("separate=%v,declared=%v", opts.SeparateChecks, opts.DeclaredKeys), func(t *testing.T) {
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
			if loads := s.Stats().ScriptLoads; loads < flushes {
				t.Errorf("the script was loaded %d times, the flushes came to nothing", loads)
			}
		})
	}
}

// TestConnectionsKilledUnderLoad: connections end again and again with calls on
// their way. Everybody is answered in time, nothing is admitted twice, and what
// calls took whose replies were lost is counted, to the unit at most.
func TestConnectionsKilledUnderLoad(t *testing.T) {
	const kills, deadline = 60, 2 * time.Second
	c := redistest.SharedCluster(t)
	var masters []*redis.Client
	for _, n := range c.Masters(t) {
		masters = append(masters, client(t, n.Addr))
	}
	for _, opts := range ways {
		t.Run(fmt.Sprintf("separate=%v,declared=%v", opts.SeparateChecks, opts.DeclaredKeys), func(t *testing.T) {
			s := openWithOptions(t, opts, c.Addrs()...)
			ld := startLoad(t, s, deadline, someTenants(t, 12)...)
			for i := range kills {
				if err := masters[i%len(masters)].Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal").Err(); err != nil {
					t.Fatal(err)
				}
				ld.advance(8 * loadPipeline)
			}
			excess := ld.balance()
			st := s.Stats()
			if st.Trouble[KindNetwork] == 0 {
				t.Error("no call was on its way when its connection was killed")
			}
			if excess > st.RefundsLost {
				t.Errorf("the buckets have lost %d units more than were admitted, of which %d were counted", excess, st.RefundsLost)
			}
			t.Logf("%d checks, %d undecided: %d units lost, at most %d counted; the slowest pipeline took %s", ld.checks.Load(), ld.backstop.total(), excess, st.RefundsLost, ld.slowest())
			if slowest := ld.slowest(); slowest > deadline {
				t.Errorf("a pipeline took %s, its deadline is %s", slowest, deadline)
			}
		})
	}
}
