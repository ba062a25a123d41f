package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// TestSettleAcrossABoundary checks that units return to a sliding window while it counts,
// whether or not another check came first since its end, and to a fixed window before its
// end.
func TestSettleAcrossABoundary(t *testing.T) {
	stores := openTimedStores(t)
	const start = 2_208_988_800_000_000 // 2040: nothing expires while the test runs
	for name, store := range stores.byName {
		for _, tc := range []struct {
			algorithm string
			after     int64 // microseconds
			remaining int64 // of 10, 2 of which were used
		}{
			{"sliding_window", 59_000_000, 8},
			{"sliding_window", 61_000_000, 8},
			{"sliding_window", 119_000_000, 9}, // two units count for a sixtieth, rounded up
			{"sliding_window", 121_000_000, 10},
			{"fixed_window", 59_000_000, 8},
			{"fixed_window", 61_000_000, 10},
		} {
			set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "10/m", Algorithm: tc.algorithm})
			for _, checked := range []bool{false, true} {
				tenant := fmt.Sprint("boundary-", tc.algorithm, tc.after, checked)
				var b limit.Buffer
				take := func(now int64, req limit.Request) limit.Item {
					b.Reset()
					req.Tenant = tenant
					set.Resolve(&req, testAddrs, now, &b)
					store.Take(stores.at(t, now), b.Items, b.Calls)
					return b.Items[0]
				}
				take(start, limit.Request{Cost: 6, ID: "x", Hold: limit.HoldReservation, HoldFor: time.Hour})
				want := tc.remaining
				if checked {
					take(start+tc.after, limit.Request{Cost: 1})
					want--
				}
				what := limit.Settlement{Hold: limit.HoldReservation, Tenant: tenant, ID: "x", Change: limit.ChangeCommit, Units: 2}
				if got, _ := store.Settle(stores.at(t, start+tc.after), &what); got != limit.OutcomeDone {
					t.Fatalf("%s: outcome %d", name, got)
				}
				if it := take(start+tc.after, limit.Request{Cost: 1}); it.Remaining+1 != want {
					t.Errorf("%s, %s, after %d us, another check came first: %v: %d left, want %d", name, tc.algorithm, tc.after, checked, it.Remaining+1, want)
				}
			}
		}
	}
}
