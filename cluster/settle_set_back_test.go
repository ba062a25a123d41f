package cluster

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
)

// TestSettleAfterAStepBack checks that units of a reservation return to a sliding log
// although the store's clock has been set back since, and a check has moved all units to
// its own time.
func TestSettleAfterAStepBack(t *testing.T) {
	stores := openTimedStores(t)
	const start = 2_208_988_800_000_000 // 2040: nothing expires while the test runs
	for name, store := range stores.byName {
		for _, checked := range []bool{false, true} {
			set := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "20/h", Algorithm: "sliding_log"})
			take := func(now int64, req limit.Request) limit.Item {
				var b limit.Buffer
				req.Tenant = fmt.Sprint("back-", checked)
				set.Resolve(&req, testAddrs, now, &b)
				store.Take(stores.at(t, now), b.Items, b.Calls)
				return b.Items[0]
			}
			take(start, limit.Request{Cost: 3})
			take(start+1_000_000, limit.Request{Cost: 4, ID: "x", Hold: limit.HoldReservation, HoldFor: time.Hour})
			now, want := int64(start-10_000_000), int64(20-3-1)
			if checked {
				take(now, limit.Request{Cost: 1})
				want--
			}
			now += 1_000_000
			what := limit.Settlement{Hold: limit.HoldReservation, Tenant: fmt.Sprint("back-", checked), ID: "x", Change: limit.ChangeCommit, Units: 1}
			if got, _ := store.Settle(stores.at(t, now), &what); got != limit.OutcomeDone {
				t.Fatalf("%s: outcome %d", name, got)
			}
			if it := take(now, limit.Request{Cost: 1}); it.Remaining+1 != want {
				t.Errorf("%s, another check came first: %v: %d left, want %d", name, checked, it.Remaining+1, want)
			}
		}
	}
}
