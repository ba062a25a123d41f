package memory_test

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/memory"
)

// driver sends a store checks of one limit at chosen times.
type driver struct {
	store *memory.Store
	set   *limit.Set
	now   int64
}

func (d *driver) take(tenant string) bool {
	var b limit.Buffer
	d.set.Resolve(&limit.Request{Tenant: tenant, Cost: 1}, nil, d.now, &b)
	d.store.Take(limit.DecisionTime{Now: d.now}, b.Items, b.Calls)
	return b.Items[0].Allowed
}

// TestBoundKeepsDebt floods a full store with new names: existing buckets keep their
// debt, new names share the units of one bucket, and memory does not grow.
func TestBoundKeepsDebt(t *testing.T) {
	const bound = 6400
	d := &driver{memory.New(memory.Options{Buckets: bound}), storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "10/h", Burst: "10"}), 1_800_000_000e6}
	for range 10 {
		if !d.take("debtor") {
			t.Fatal("the debtor's own units were denied")
		}
	}
	admitted := 0
	for i := range 10 * bound {
		if d.take(fmt.Sprint("flood", i)) {
			admitted++
		}
	}
	if d.take("debtor") {
		t.Error("the flood cleared the debt")
	}
	if n := d.store.Len(); n > bound {
		t.Errorf("%d buckets are kept, the bound is %d", n, bound)
	}
	if most := bound + 10; admitted > most {
		t.Errorf("%d of the flood were admitted, want at most %d", admitted, most)
	}
	if d.store.Overflows() == 0 {
		t.Error("no overflow was counted")
	}
	// When the flood's buckets are full again, they make room.
	d.now += 3600e6
	fresh := 0
	for i := range 100 {
		if d.take(fmt.Sprint("fresh", i)) {
			fresh++
		}
	}
	if fresh != 100 {
		t.Errorf("%d of 100 new names were admitted after an hour", fresh)
	}
	for range 9 {
		d.take("fresh1")
	}
	if d.take("fresh1") {
		t.Error("a bucket made in the freed room does not count")
	}
}

// TestChurnReusesSlots checks that names that come and go do not fill the store.
func TestChurnReusesSlots(t *testing.T) {
	d := &driver{memory.New(memory.Options{}), storetest.Compile(t, storetest.Spec{ID: "n", By: []string{"tenant"}, Rate: "1000/s"}), 1_800_000_000e6}
	for i := range 200_000 {
		d.now += 100
		if !d.take(fmt.Sprint("passer", i)) {
			t.Fatalf("passer %d was denied", i)
		}
	}
	if n := d.store.Len(); n > 20_000 {
		t.Errorf("%d buckets are kept of 200,000 that were full again after a millisecond", n)
	}
}
