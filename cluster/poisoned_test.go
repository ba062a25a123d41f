package cluster

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/limit"
)

// TestPoison plants in the place of every bucket what is none. Its tenant gets decisions all the
// same, in time, and all others those of the store: what is wrong with a bucket is no
// reason to leave the shard alone, nor to fill the log.
func TestPoison(t *testing.T) {
	for _, l := range poisonLimits {
		t.Run(l.id, func(t *testing.T) {
			w := newWard(t)
			tenants := []string{l.id, "all-" + l.id}
			buckets := []bucket{w.bucketOf(tenants[0], l.id), w.bucketOf(tenants[1], l.id)}
			n := 0
			for _, p := range plantsFor(w, tenants[0], l.id, buckets[0]) {
				n++
				w.now = p.name
				for i, b := range buckets {
					w.client.Del(t.Context(), b.key)
					w.decide(false, w.id(victim(tenants[i]), limit.HoldSlot))
					p.put(t, w.client, b.key)
				}
				w.exercise(tenants...)
				w.healthy()
				if t.Failed() {
					t.Fatalf("after %d plants", n)
				}
			}
			w.forgets(tenants, buckets)
			if lines := w.lines.n.Load(); lines > int64(4*len(buckets)) {
				t.Errorf("%d plants in %d buckets made %d lines of log", n, len(buckets), lines)
			}
			t.Logf("%d plants", n)
		})
	}
}

// forgets checks that a tenant whose bucket is mended has the store's decisions again.
func (w *ward) forgets(tenants []string, buckets []bucket) {
	w.t.Helper()
	w.now = "mended"
	for i, tenant := range tenants {
		w.client.Del(w.t.Context(), buckets[i].key)
		w.decide(false, victim(tenant))
		if d := w.batch.Decisions[0]; d.Source != limit.SourceStore && d.Source != limit.SourcePolicy || !d.Allowed {
			w.t.Errorf("%s is decided by %s after its bucket was mended: %+v", tenant, d.Source, d)
		}
	}
}

// plantsFor returns what to put in the place of the bucket that a tenant has of a limit.
func plantsFor(w *ward, tenant, id string, b bucket) []plant {
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
	real, err := get.Result()
	if err != nil {
		w.t.Fatalf("read the bucket of %s: %v", tenant, err)
	}
	values := poisonValues(real)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		plants = append(plants, plant{name, func(tb testing.TB, c *redis.Client, key string) {
			tb.Helper()
			put := c.Set(tb.Context(), key, values[name], 0).Err
			if b.field != "" {
				put = c.HSet(tb.Context(), key, b.field, values[name]).Err
			}
			if err := put(); err != nil {
				tb.Fatalf("plant %s: %v", name, err)
			}
		}})
	}
	return plants
}
