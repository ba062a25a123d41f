package catalog

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// crowd returns a table of many tenants, of which every second one overrides its plan.
func crowd(tenants int) []table.Item {
	items := []table.Item{shared, free, pro}
	for i := range tenants {
		items = append(items, tenant(i, 1))
	}
	return items
}

// tenant returns a version of one tenant of a crowd.
func tenant(i int, version int64) table.Item {
	body := `{"plan": "pro"}`
	if (int64(i)+version)%2 == 0 {
		body = fmt.Sprintf(`{"plan": "pro", "overrides": {"tenant": {"rate": "%d/s"}}}`, int64(i)+version)
	}
	return item(fmt.Sprint("TENANT#t", i), version, body)
}

// TestManyTenants: more single updates than compactAfter.
func TestManyTenants(t *testing.T) {
	const tenants, updates = 1500, compactAfter + 50
	items := crowd(tenants)
	c := loaded(t, items...)
	for i := range updates {
		n := i * 7 % tenants
		items[3+n] = tenant(n, items[3+n].Version+1)
		c.Apply([]table.Item{items[3+n]})
	}
	if c.grown >= compactAfter {
		t.Errorf("%d tenants are compiled beside the set", c.grown)
	}
	want := loaded(t, items...)
	for i := range tenants {
		name := fmt.Sprint("t", i)
		if a, b := account(want.Set(), name), account(c.Set(), name); a != b {
			t.Fatalf("want %sgot %s", a, b)
		}
	}
	if c.Digest() != want.Digest() || c.Status().Version != want.Status().Version {
		t.Errorf("%v, not %v", c.Digest(), want.Digest())
	}
}

func heap() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// BenchmarkMany measures the start with 10,000 tenants, and 1,000 changes one by one,
// in time and in memory that stays.
func BenchmarkMany(b *testing.B) {
	const tenants, updates = 10_000, 1000
	items := crowd(tenants)
	for b.Loop() {
		empty, start := heap(), time.Now()
		c := loaded(b, items...)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "ms/load")
		full := heap()
		b.ReportMetric((full-empty)/tenants, "B/tenant")
		start = time.Now()
		for i := range updates {
			c.Apply([]table.Item{tenant(i*7, 2)})
		}
		b.ReportMetric(float64(time.Since(start).Microseconds())/updates, "us/update")
		b.ReportMetric((heap()-full)/updates, "B/update")
		runtime.KeepAlive(c)
	}
}

// BenchmarkUpdate measures a change of one tenant of 10,000.
func BenchmarkUpdate(b *testing.B) {
	c := loaded(b, crowd(10_000)...)
	b.ReportAllocs()
	version := int64(1)
	for b.Loop() {
		version++
		c.Apply([]table.Item{tenant(int(version)%10_000, version)})
	}
}

// BenchmarkUpdateBesideBadPlan measures the same while a plan cannot be used.
func BenchmarkUpdateBesideBadPlan(b *testing.B) {
	c := loaded(b, crowd(10_000)...)
	c.Apply([]table.Item{item("PLAN#free", 2, "[{}]")})
	version := int64(1)
	for b.Loop() {
		version++
		c.Apply([]table.Item{tenant(int(version)%10_000, version)})
	}
}

// BenchmarkLoadBadTenant measures a load with one tenant that cannot be used.
func BenchmarkLoadBadTenant(b *testing.B) {
	items := append(crowd(10_000), item("TENANT#bad", 1, "7"))
	for b.Loop() {
		loaded(b, items...)
	}
}
