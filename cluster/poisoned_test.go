package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/limit"
)

// TestPoison plants invalid values in the place of every bucket. Its tenant still gets
// decisions in time, and all other tenants get decisions of the store: a bad bucket must
// neither open the breaker nor flood the log.
func TestPoison(t *testing.T) {
	for _, l := range poisonLimits {
		t.Run(l.id, func(t *testing.T) {
			w := newWard(t)
			tenants := []string{l.id, "all-" + l.id}
			buckets := []bucketKey{w.bucketOf(tenants[0], l.id), w.bucketOf(tenants[1], l.id)}
			plants := plantsFor(w, tenants[0], l.id, buckets[0])
			for n, p := range plants {
				w.now = p.name
				w.empty(tenants...)
				// The tenant with all limits costs ten times as much, so it gets only some
				// of the plants.
				for i := range 1 + min(1, max(0, 1-n%4)) {
					w.decide(false, w.id(victim(tenants[i]), limit.HoldSlot))
					p.put(t, w.client, buckets[i].key)
					w.exercise(tenants[i])
				}
				w.healthy()
				if len(w.harmful) > mostPoisoned {
					t.Fatalf("after %d plants", n+1)
				}
			}
			w.forgets(tenants...)
			if lines := w.lines.n.Load(); lines > int64(4*len(buckets)) {
				t.Errorf("%d plants in %d buckets made %d lines of log", len(plants), len(buckets), lines)
			}
			t.Logf("%d plants", len(plants))
		})
	}
}

// forgets checks that the store decides again for a tenant after its bucket is repaired.
func (w *ward) forgets(tenants ...string) {
	w.t.Helper()
	w.now = "mended"
	w.empty(tenants...)
	for _, tenant := range tenants {
		w.decide(false, victim(tenant))
		if d := w.batch.Decisions[0]; d.Source != limit.SourceStore || !d.Allowed {
			w.t.Errorf("%s is decided by %s after its bucket was mended: %+v", tenant, d.Source, d)
		}
	}
}

// plantsFor returns the plants for a tenant's bucket of a limit.
func plantsFor(w *ward, tenant, id string, b bucketKey) []plant {
	w.t.Helper()
	w.now = "healthy"
	w.decide(false, w.id(victim(tenant), limit.HoldSlot))
	plants := slices.Clone(types)
	if strings.HasSuffix(id, "log") || id == "slots" {
		return append(plants, sets()...)
	}
	healthy, err := w.client.Get(w.t.Context(), b.key).Result()
	if err != nil {
		w.t.Fatalf("read the bucket of %s: %v", tenant, err)
	}
	shape := shapes[strings.TrimPrefix(id, "own_")]
	if shape.numbers == 0 {
		shape.numbers = 6
	}
	values := poisonValues(healthy, shape)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		plants = append(plants, planted(name, "SET", "KEY", values[name]))
	}
	old := oldPoison(shape)
	if b.field != "" {
		for _, digits := range []int{20, 200, 300, 400} {
			text := "\x01" + strings.Repeat("9", digits) + "/1/1;" + strings.Repeat("\x00", 24)
			plants = append(plants, planted(fmt.Sprintf("another field, %d digits", digits), "HSET", "KEY", ":gone;t", text))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(old)) {
		if b.field == "" {
			plants = append(plants, planted("old: "+name, "SET", "KEY", old[name]))
		} else {
			plants = append(plants, planted("old: "+name, "HSET", "KEY", b.field, old[name]))
		}
	}
	return plants
}

// shapes are the shapes of token buckets of poisonLimits, by id. Windows have six numbers.
var shapes = map[string]bucketShape{
	"tokens": {2, "1/3600000/1000;"}, "region": {2, "1/3600000/1000;"},
	"large_tokens": {3, "1099511627776/31622400000000/1099511627776;"},
}
