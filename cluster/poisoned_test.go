package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

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
	get := w.client.Get(w.t.Context(), b.key)
	if b.field != "" {
		get = w.client.HGet(w.t.Context(), b.key, b.field)
	}
	healthy, err := get.Result()
	if err != nil {
		w.t.Fatalf("read the bucket of %s: %v", tenant, err)
	}
	values := poisonValues(healthy)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		plants = append(plants, plant{name, func(tb testing.TB, c *redis.Client, key string) {
			tb.Helper()
			var err error
			if b.field != "" {
				err = c.HSet(tb.Context(), key, b.field, values[name]).Err()
			} else {
				err = c.Set(tb.Context(), key, values[name], 0).Err()
			}
			if err != nil {
				tb.Fatalf("plant %s: %v", name, err)
			}
		}})
	}
	return plants
}
