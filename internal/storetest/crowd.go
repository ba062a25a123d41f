package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

const (
	// crowdSize is the number of goroutines of Crowd, each with requests for two units.
	crowdSize = 200
	// crowdUnits is the number of available units.
	crowdUnits = 150
)

// Crowd runs many goroutines on buckets with too few units for all of them: exactly the
// available units are admitted, all or nothing over two levels, and every denied request
// gets a wait.
func Crowd(t *testing.T, store limiter.Store) {
	roomy := Spec{ID: "roomy", By: []string{"tenant"}, Rate: "1000/366d", Algorithm: "fixed_window"}
	narrow := Spec{ID: "narrow", By: []string{"tenant", "op"}, Rate: "100/366d", Algorithm: "sliding_window"}
	for i, spec := range []Spec{
		{ID: "n", By: []string{"tenant"}, Rate: "5/366d", Burst: fmt.Sprint(crowdUnits)},
		{ID: "n", By: []string{"tenant"}, Rate: fmt.Sprintf("%d/366d", crowdUnits), Algorithm: "sliding_window"},
		{ID: "n", By: []string{"tenant", "user"}, Rate: fmt.Sprintf("%d/366d", crowdUnits), Algorithm: "fixed_window"},
	} {
		tenant := fmt.Sprintf("%s-%d-", Fresh(t), i)
		crowd(t, store, tenant+"alone", spec)
		// Half of the requests have one op, half another, each of which has 100 units.
		crowd(t, store, tenant+"levels", roomy, spec, narrow)
	}
}

// crowd sends all requests at once.
func crowd(t *testing.T, store limiter.Store, tenant string, specs ...Spec) {
	t.Helper()
	l := newLimiter(t, store, Compile(t, specs...))
	told := make([][]answer, crowdSize)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for g := range crowdSize {
		wg.Go(func() {
			req := limit.Request{Tenant: tenant, Op: fmt.Sprint("op", g%2), Dims: []limit.Dim{{Name: "user", Value: "u"}}, Cost: 1}
			var b limiter.Batch
			<-start
			for range 2 {
				b.Reset()
				b.Requests = append(b.Requests, req)
				began := time.Now()
				l.Decide(&b)
				told[g] = append(told[g], answers(g, b.Requests, &b, began)...)
			}
		})
	}
	began := time.Now()
	close(start)
	wg.Wait()
	judgeCrowd(t, l, slices.Concat(told...), began)
}

// judgeCrowd checks the answers of a crowd that began at an instant.
func judgeCrowd(t *testing.T, l *limiter.Limiter, told []answer, began time.Time) {
	t.Helper()
	slack := time.Since(began).Milliseconds() + 2
	left := leftIn(told)
	admitted := 0
	for i := range told {
		a := &told[i]
		if a.decision.Allowed {
			admitted++
		}
		for j := range a.items {
			want := verdictAt(&a.items[j], began)
			if why := difference(&a.items[j].Verdict, &want, slack); why != "" {
				t.Errorf("%s\n%s", why, a)
			}
		}
	}
	if admitted != crowdUnits {
		t.Errorf("%d of %d admitted, want exactly %d", admitted, len(told), crowdUnits)
	}
	checkLeft(t, l, told[0].req, left)
	checkLeft(t, l, told[1].req, left)
}

// verdictAt returns the verdict of an item's bucket with the units left that the item
// has.
func verdictAt(it *limit.Item, now time.Time) bucket.Verdict {
	w := Twin{}
	items := []limit.Item{*it}
	before := it.Limit.Params.Capacity - it.Remaining
	if it.Allowed {
		before -= it.Cost
	}
	if items[0].Cost = before; before > 0 {
		w.Decide(items, now.UnixMicro(), true)
	}
	items[0].Cost = it.Cost
	w.Decide(items, now.UnixMicro(), false)
	return items[0].Verdict
}
