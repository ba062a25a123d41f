package integration

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// TestSplitBucket: pipelines of many connections on a bucket that is split get no more
// than it has, and hardly less; other commands among them are answered in their place.
func TestSplitBucket(t *testing.T) {
	const units = 2000
	c := redistest.StartCluster(t, 2, 0)
	limits := writeLimits(t, fmt.Sprintf(`
version: 1
default_plan: p
plans:
  p:
    - {id: split, by: [tenant], rate: 1/d, burst: %d, shards: 4, on_error: open}
    - {id: op, by: [tenant, op], rate: 1000000/s, on_error: open}
`, units))
	var all []*proxy
	for _, n := range c.Nodes {
		all = append(all, serve(t, limits, append([]string{"--redis", n.Addr, "--instances", "2"}, exact...)...))
	}
	var granted atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		client := all[i%2].client()
		wg.Go(func() {
			for range 2 * units / 8 / 10 {
				pipe := client.Pipeline()
				var checks []*redis.Cmd
				for j := range 10 {
					checks = append(checks, pipe.Do(t.Context(), "RL.CHECK", "t", fmt.Sprint("op", j%3), "-"))
				}
				echo := pipe.Echo(t.Context(), "end")
				if _, err := pipe.Exec(t.Context()); err != nil || echo.Val() != "end" {
					t.Errorf("pipeline: %v, %q", err, echo.Val())
					return
				}
				for _, cmd := range checks {
					v, err := asVerdict(cmd)
					if err != nil || v.source != "store" && v.source != "cache" {
						t.Errorf("%+v: %v", v, err)
					}
					if v.allowed {
						granted.Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := granted.Load(); n > units || n < units*9/10 {
		t.Errorf("granted %d of %d units", n, units)
	}
	explained := fmt.Sprint(all[0].client().Do(t.Context(), "RL.EXPLAIN", "t", "op1", "-").Val())
	if !strings.Contains(explained, "4 parts") || !strings.Contains(explained, "upper bound") {
		t.Errorf("RL.EXPLAIN does not say that it is split: %s", explained)
	}
	for _, n := range c.Nodes {
		redistest.AssertAllKeysExpire(t, n)
	}
}
