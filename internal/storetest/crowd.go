package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

const (
	// crowdSize is how many goroutines Crowd asks with, each for two units.
	crowdSize = 200
	// crowdUnits is how many units there are.
	crowdUnits = 150
)

// Crowd lets many goroutines at buckets that have less than they want: exactly
// what there is gets admitted, all or nothing over two levels, and everybody who
// is denied is told how long to wait.
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
		// Half of them want one op, half another, each of which has 100 units.
		crowd(t, store, tenant+"levels", roomy, spec, narrow)
	}
}

// crowd has everybody ask at once.
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

// judgeCrowd checks what a crowd was told that began to ask at an instant.
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

// verdictAt returns what an item's bucket says that holds what the item says is
// left.
func verdictAt(it *limit.Item, now time.Time) limit.Verdict {
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
