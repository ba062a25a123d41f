package admission

import (
	"fmt"
	"math"
	"sync"
	"testing"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
)

// compile compiles limits that count by tenant alone, and some that do not.
func compile(t *testing.T, cells *limit.Cells) *limit.Set {
	t.Helper()
	set, _, err := config.ParseLimits("limits", []byte(`
version: 1
default_plan: p
plans:
  p:
    - {id: tenant, by: [tenant], rate: 10/s, burst: 400}
    - {id: window, by: [tenant], group: w, rate: 500/m, algorithm: sliding_window}
    - {id: user, by: [tenant, user], rate: 10/s}
    - {id: watching, by: [tenant], group: s, rate: 10/s, mode: shadow}
shared: [{id: ip, by: [ip], rate: 1000/s}]
`), limit.CompileOptions{Cells: cells})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// decide returns the items of a request as a store that admits everything leaves them.
func decide(t *testing.T, set *limit.Set, tenant string, cost int64) []limit.Item {
	t.Helper()
	var b limit.Buffer
	set.Resolve(&limit.Request{Tenant: tenant, Cost: cost}, nil, 0, &b) // without an address
	for i := range b.Items {
		b.Items[i].Allowed = true
	}
	return b.Items
}

// TestRotate: admitted units are compared with the limit of all cells, not with a part
// of it. Denied requests, shadow limits, and limits that count by more than a tenant
// are not counted.
func TestRotate(t *testing.T) {
	set := compile(t, &limit.Cells{Weights: []int64{1, 1}})
	c := New()
	for range 100 {
		c.Observe(&limit.Decision{Allowed: true}, decide(t, set, "acme", 5))
		c.Observe(&limit.Decision{}, decide(t, set, "acme", 5))
	}
	want := map[string]float64{"{acme}:tenant;t": 500. / (400 + 600), "{acme}:window;s": 500. / 500}
	got := c.Rotate()
	for name, share := range want {
		found := false
		for n, s := range got {
			found = found || len(n) > len(name) && n[len(n)-len(name):] == name && math.Abs(s-share) < 1e-9
		}
		if !found {
			t.Errorf("%s is not %g in %v", name, share, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("counted %v", got)
	}
	if again := c.Rotate(); len(again) != 0 {
		t.Errorf("in the next window there is %v", again)
	}
}

// TestTopN: of many buckets those nearest to their limit are returned, and memory is
// bounded.
func TestTopN(t *testing.T) {
	set := compile(t, nil)
	c := New()
	for i := range maxBuckets/2 + 100 { // two buckets each
		cost := int64(1)
		if i%100 == 0 {
			cost = 100
		}
		c.Observe(&limit.Decision{Allowed: true}, decide(t, set, fmt.Sprint("t", i), cost))
	}
	got := c.Rotate()
	if len(got) != Most || c.Missed() == 0 {
		t.Errorf("told of %d, missed %d", len(got), c.Missed())
	}
	large := 0
	for _, share := range got {
		if share >= .1 {
			large++
		}
	}
	if large < 650 { // 328 tenants have two large shares each
		t.Errorf("of the large shares %d are told", large)
	}
	c.Observe(&limit.Decision{Allowed: true}, decide(t, set, "after", 1))
	if got := c.Rotate(); len(got) != 2 {
		t.Errorf("after a full window there is %v", got)
	}
}

// TestObserveAtOnce: concurrent calls lose no count.
func TestObserveAtOnce(t *testing.T) {
	set := compile(t, nil)
	c := New()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			items := decide(t, set, "acme", 1)
			for range 5000 {
				c.Observe(&limit.Decision{Allowed: true}, items)
			}
		})
	}
	wg.Wait()
	sum := 0.
	for _, share := range c.Rotate() {
		sum += share
	}
	if want := 20000./1000 + 20000./500; math.Abs(sum-want) > 1e-9 {
		t.Errorf("counted %g, not %g", sum, want)
	}
}
