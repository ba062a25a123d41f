//go:build long

package doctor

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/internal/capacity"
	"github.com/limitgate/limitgate/internal/redistest"
)

// The load of TestLongPlan: on some connections, checked for what is due at each tick.
const (
	planConns = 4
	planTick  = time.Millisecond
	planTime  = 5 * time.Second
)

// TestLongPlan measures the processor time of a call, loads a Redis with the calls that a plan
// gives one shard, and prints the part of a processor that they take.
func TestLongPlan(t *testing.T) {
	addr := redistest.Start(t).Addr
	store := cluster.Options{Addrs: []string{addr}, DialTimeout: 5 * time.Second, IOTimeout: 5 * time.Second}
	report, err := Inspect(t.Context(), Options{Store: store, DecisionTimeout: time.Second, MeasureCPU: true})
	if err != nil || len(report.Masters[0].CPU) == 0 {
		t.Fatalf("%v: %s", err, report.text())
	}
	prices, err := capacity.ParsePrices(capacity.DefaultPrices)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range report.Masters[0].CPU {
		in := capacity.Default(capacity.Number{Value: 1, Origin: capacity.OriginGiven}, false, prices)
		in.CallCPU = capacity.Number{Value: float64(c.CPU) / float64(time.Microsecond), Origin: capacity.OriginMeasured}
		plan, err := capacity.Make(in)
		if err != nil {
			t.Fatal(err)
		}
		share, rate := loadPaced(t, store, c.Buckets, plan.TenantCeiling)
		t.Logf("calls of %d buckets: %s each; planned %.0f/s for %.0f %% of a processor; %.0f/s took %.0f %%",
			c.Buckets, c.CPU, plan.TenantCeiling, 100*in.Utilisation.Value, rate, 100*share)
	}
}

// loadPaced makes a number of calls a second of n buckets. It returns the part of a processor that
// the Redis took, and the calls that were made in a second.
func loadPaced(t *testing.T, store cluster.Options, n int, rate float64) (share, made float64) {
	t.Helper()
	prober, err := cluster.NewProber(store)
	if err != nil {
		t.Fatal(err)
	}
	var conns []*masterInspection
	for i := range planConns {
		m := &masterInspection{
			addr: store.Addrs[0], opts: store, client: prober.Client(store.Addrs[0]), report: &MasterReport{},
			tags: probeTags("plan"+strconv.Itoa(i), func(uint16) bool { return true }),
		}
		if m.conn, err = prober.Connect(t.Context(), m.addr, false); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { m.cleanUp(context.Background()) })
		conns = append(conns, m)
	}
	before, err := conns[0].processorTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	var wg sync.WaitGroup
	calls := make([]int, planConns)
	for i, m := range conns {
		wg.Go(func() { calls[i] = m.pace(t, n, rate/planConns) })
	}
	wg.Wait()
	took := time.Since(began)
	after, err := conns[0].processorTime(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		made += float64(c)
	}
	return float64(after-before) / float64(took), made / took.Seconds()
}

// pace makes a number of calls a second of n buckets, for planTime, and returns the number that
// it made.
func (m *masterInspection) pace(t *testing.T, n int, rate float64) (made int) {
	b := m.encodeLoad(n)
	tick := time.NewTicker(planTick)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < planTime; <-tick.C {
		for due := int(time.Since(began).Seconds() * rate); made < due; made += cpuBatch {
			if err := m.exchange(t.Context(), b); err != nil {
				t.Error(err)
				return made
			}
		}
	}
	return made
}
