package storetest

import (
	"fmt"
	"testing"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// SerialOrder sends concurrent checks of the same few buckets, with different costs and
// limits, on several connections. It searches for an order of all checks in which
// deciding one after the other gives every answer: admitted or not, units left and wait.
// However a store batches checks, there must be such an order; also if the proxy has a
// deny cache.
func SerialOrder(t *testing.T, store limiter.Store, seed uint64, histories int) {
	t.Helper()
	serialOrder(t, store, newDraw(t, seed), histories)
}

// SerialOrderWithoutIDs is SerialOrder for checks without ids. A check with an id is sent
// in a command of its own: if a node forgets the script between two commands of a batch,
// the first of them is decided last.
func SerialOrderWithoutIDs(t *testing.T, store limiter.Store, seed uint64, histories int) {
	t.Helper()
	d := newDraw(t, seed)
	d.noIDs = true
	serialOrder(t, store, d, histories)
}

func serialOrder(t *testing.T, store limiter.Store, d *draw, histories int) {
	t.Helper()
	limiters := []*limiter.Limiter{newLimiter(t, store, nil), newCachingLimiter(t, store)}
	checks, denied, remembered := 0, 0, 0
	for range histories {
		h := d.oneSlot()
		began := time.Now()
		answers := h.run(t, limiters[d.random.IntN(2)])
		// Waits are rounded up to a millisecond, at both ends.
		slack := time.Since(began).Milliseconds() + 2
		for _, ofSlot := range bySlot(answers) {
			checks += len(ofSlot)
			for i := range ofSlot {
				if !ofSlot[i].decision.Allowed {
					denied++
				}
				if ofSlot[i].decision.Source == limit.SourceCache {
					remembered++
				}
			}
			if o := newOrder(ofSlot, began.UnixMicro(), slack); !o.find() {
				t.Fatalf("history %d: no order of the checks gives the answers that they were given.\n%s", d.n, o.explain())
			}
		}
	}
	t.Logf("%d histories of %d checks, %d of them denied, %d without asking", histories, checks, denied, remembered)
}

// bySlot returns the answers of each hash slot.
func bySlot(answers []answer) map[string][]answer {
	slots := map[string][]answer{}
	for _, a := range answers {
		if len(a.items) > 0 {
			tag := string(a.items[0].Name[:a.items[0].TagLen])
			slots[tag] = append(slots[tag], a)
		}
	}
	return slots
}

// ManySlots sends concurrent requests that need several hash slots. A request that is
// denied in one of them may hold units of another for a short time, for which others may
// be denied. But never is more admitted than the limits, every denial is explained by the
// units held or admitted by then, and after the last request the buckets have lost
// exactly the admitted units.
func ManySlots(t *testing.T, store limiter.Store, seed uint64, histories int) {
	d := newDraw(t, seed)
	l := newLimiter(t, store, nil)
	admitted, denied := 0, 0
	for range histories {
		h := d.manySlots()
		answers := h.run(t, l)
		left := leftIn(answers)
		for name, n := range left {
			if n < 0 {
				t.Errorf("history %d: %s has admitted %d units too many", d.n, name, -n)
			}
		}
		for i := range answers {
			if answers[i].decision.Allowed {
				admitted++
				continue
			}
			denied++
			if why := unexplained(answers, i); why != "" {
				t.Errorf("history %d: denied for no reason: %s\n%s", d.n, why, &answers[i])
			}
		}
		for _, a := range differing(answers) {
			checkLeft(t, l, a.req, left)
		}
		for _, a := range differing(answers) {
			a.req.ID = "" // the one before was answered
			takeRest(t, l, a, left)
		}
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("%d histories: %d requests admitted, %d denied", histories, admitted, denied)
}

// leftIn returns the units that the admitted answers leave in each bucket.
func leftIn(answers []answer) map[string]int64 {
	left := map[string]int64{}
	for i := range answers {
		for j := range answers[i].items {
			it := &answers[i].items[j]
			name := string(it.Name)
			if _, ok := left[name]; !ok {
				left[name] = it.Limit.Params.Capacity
			}
			if answers[i].decision.Allowed {
				left[name] -= it.Cost
			}
		}
	}
	return left
}

// unexplained returns the bucket in which answer i was denied although it had room: a
// request that began before i's pipeline ended may have been admitted by then, and a
// request that did not end before it began may have held units, even if it was denied.
func unexplained(answers []answer, i int) string {
	a := &answers[i]
	for j := range a.items {
		it := &a.items[j]
		if it.Allowed || it.Cost > it.Limit.Params.Capacity {
			continue
		}
		taken := int64(0)
		for k := range answers {
			b := &answers[k]
			mayHold := b.decision.Allowed || b.ended.After(a.began)
			if k != i && b.began.Before(a.ended) && mayHold && shareBucket(b.items, a.items[j:j+1]) {
				taken += b.req.Cost
			}
		}
		if taken+it.Cost <= it.Limit.Params.Capacity {
			return fmt.Sprintf("%s held or admitted %d of %d", it.Name, taken, it.Limit.Params.Capacity)
		}
	}
	return ""
}

// checkLeft checks the remaining units of the buckets of a request.
func checkLeft(t *testing.T, l *limiter.Limiter, req limit.Request, left map[string]int64) {
	t.Helper()
	req.ID = "" // the one before was answered
	req.Cost = 1
	var b limiter.Batch
	b.Requests = append(b.Requests, req)
	l.Peek(&b)
	for _, it := range b.Items(0) {
		has := it.Remaining
		if it.Allowed {
			has++
		}
		if want := left[string(it.Name)]; has != want {
			t.Errorf("%s has %d left, want %d after what was admitted", it.Name, has, want)
		}
	}
}

// differing returns one answer for each set of buckets.
func differing(answers []answer) []*answer {
	var out []*answer
	seen := map[string]bool{}
	for i := range answers {
		key := ""
		for _, it := range answers[i].items {
			key += string(it.Name) + "\n"
		}
		if !seen[key] {
			seen[key] = true
			out = append(out, &answers[i])
		}
	}
	return out
}

// takeRest takes all remaining units of all buckets of a request, and then one more. It
// keeps left up to date.
func takeRest(t *testing.T, l *limiter.Limiter, a *answer, left map[string]int64) {
	t.Helper()
	req := a.req
	least := int64(bucket.MaxCost)
	for _, it := range a.items {
		least = min(least, left[string(it.Name)])
	}
	if least > 0 {
		req.Cost = least
		if d := ask(l, req); !d.Allowed {
			t.Errorf("%d units are left for %+v, but: %+v", least, req, d)
		}
		for _, it := range a.items {
			left[string(it.Name)] -= least
		}
	}
	req.Cost = 1
	if d := ask(l, req); d.Allowed {
		t.Errorf("one unit too many for %+v", req)
	}
}
