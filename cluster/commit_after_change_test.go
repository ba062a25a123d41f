package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// TestCommitAfterAChange checks that units committed beyond the estimate count in the
// window of the current limit, not in that of the limit at the time of the reservation.
func TestCommitAfterAChange(t *testing.T) {
	stores := openTimedStores(t)
	const start = 2_208_988_800_000_000 // 2040: nothing expires while the test runs
	for name, store := range stores.byName {
		for _, algorithm := range []string{"fixed_window", "sliding_window", "sliding_log"} {
			for _, tc := range []struct {
				before, after string
				later         int64 // microseconds from the commit
				admits        bool
			}{
				{"100/s", "100/h", 3_000_000, false}, // 1 and 60 of 100 are used in this hour
				{"100/10s", "100/h", 11_000_000, false},
				{"100/h", "100/s", 3_000_000, true}, // the units of that second have expired
			} {
				now := int64(start)
				tenant := fmt.Sprint("change-", algorithm, tc.before, tc.after)
				take := func(rate string, req limit.Request) limit.Item {
					var b limit.Buffer
					req.Tenant = tenant
					compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: rate, Algorithm: algorithm}).Resolve(&req, testAddrs, now, &b)
					store.Take(stores.at(t, now), b.Items, b.Calls)
					return b.Items[0]
				}
				take(tc.before, limit.Request{Cost: 1, ID: "x", Hold: limit.HoldReservation, HoldFor: time.Hour})
				now += 2_500_000
				take(tc.after, limit.Request{Cost: 1})
				what := limit.Settlement{Hold: limit.HoldReservation, Tenant: tenant, ID: "x", Change: limit.ChangeCommit, Units: 61}
				if got, _ := store.Settle(stores.at(t, now), &what); got != limit.OutcomeDone {
					t.Fatalf("%s: outcome %d", name, got)
				}
				now += tc.later
				if it := take(tc.after, limit.Request{Cost: 90}); it.Allowed != tc.admits {
					t.Errorf("%s, %s of %s that became %s: %+v", name, algorithm, tc.before, tc.after, it.Verdict)
				}
			}
		}
	}
}
