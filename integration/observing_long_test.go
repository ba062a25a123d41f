//go:build long

package integration

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

// watchedLimits have something for every part that watches: enforced, in shadow mode, warning.
const watchedLimits = `
version: 1
default_plan: p
plans:
  p:
    - {id: tenant, by: [tenant], rate: 5/h, warn: 80%}
    - {id: dark, by: [tenant, op], rate: 2/h, mode: shadow}
`

// TestLongObserving measures what it costs to be watched: the memory of a proxy after a thousand tenants
// and after many more, the time of a scrape under load, and the processor time of a decision while
// twenty pages are open. The buckets are in a Redis, so that the proxy has nothing of a tenant itself.
func TestLongObserving(t *testing.T) {
	p := serve(t, writeLimits(t, watchedLimits), append(exact, "--redis", redistest.Start(t).Addr, "--pprof", "--emf", "file:"+os.DevNull, "--deny-cache-size", "1000")...)
	const few, many = 1_000, 1_000_000
	for range 3 {
		p.checkTenants(t, 0, few, 1)
	}
	fewHeap, fewResident := p.memory()
	p.checkTenants(t, few, many, 4)
	heap, resident := p.memory()
	t.Logf("memory: a heap of %.0f KiB after %d tenants, %.0f KiB after %d; resident %.0f and %.0f KiB", fewHeap/1024, few, heap/1024, many, fewResident/1024, resident/1024)
	if heap > fewHeap+4<<20 {
		t.Error("memory grows with the tenants")
	}

	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	var sent atomic.Int64
	for range 2 {
		load.Go(func() { p.keepChecking(ctx, t, &sent) })
	}
	t.Logf("a scrape under load: %s", scrapes(p))
	t.Logf("decisions: %s", pagesCost(t, p, &sent))
	stop()
	load.Wait()
}

// checkTenants sends a check of each tenant from one number to another, in pipelines on some
// connections.
func (p *proxy) checkTenants(t *testing.T, from, to, conns int) {
	t.Helper()
	next := atomic.Int64{}
	next.Store(int64(from))
	var wg sync.WaitGroup
	for range conns {
		c := p.client()
		wg.Go(func() {
			for {
				n := int(next.Add(500)) - 500
				if n >= to {
					return
				}
				if _, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
					for i := n; i < min(n+500, to); i++ {
						pipe.Do(t.Context(), "RL.CHECK", fmt.Sprint("tenant-", i), fmt.Sprint("GET /", i%5000), "-", 5)
					}
					return nil
				}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// keepChecking sends pipelines of 16 until ctx ends.
func (p *proxy) keepChecking(ctx context.Context, t *testing.T, sent *atomic.Int64) {
	c := p.client()
	for i := 0; ctx.Err() == nil; i++ {
		if _, err := c.Pipelined(ctx, func(pipe redis.Pipeliner) error {
			for j := range 16 {
				pipe.Do(ctx, "RL.CHECK", fmt.Sprint("tenant-", (i*16+j)%10_000), "GET /", "-")
			}
			return nil
		}); err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
		sent.Add(16)
	}
}

// scrapes times readings of the metrics.
func scrapes(p *proxy) string {
	var took []time.Duration
	for range 50 {
		begin := time.Now()
		p.get("/metrics")
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	return fmt.Sprintf("median %s, longest %s of %d", took[len(took)/2].Round(time.Millisecond/10), took[len(took)-1].Round(time.Millisecond/10), len(took))
}

// pagesCost compares the processor time of a decision without and with twenty open pages, in turn.
func pagesCost(t *testing.T, p *proxy, sent *atomic.Int64) string {
	const rounds, pages, window = 5, 20, 4 * time.Second
	var without, with []float64
	for range rounds {
		without = append(without, p.cost(t, sent, window))
		ctx, stop := context.WithCancel(t.Context())
		var open sync.WaitGroup
		for range pages {
			open.Go(func() { p.watchPage(ctx, t) })
		}
		time.Sleep(time.Second) // the first sample
		with = append(with, p.cost(t, sent, window))
		stop()
		open.Wait()
	}
	slices.Sort(without)
	slices.Sort(with)
	a, b := without[rounds/2], with[rounds/2]
	return fmt.Sprintf("%.3f us of the proxy each (%.3f to %.3f), with %d open pages %.3f (%.3f to %.3f): %+.1f %%", a, without[0], without[rounds-1], pages, b, with[0], with[rounds-1], 100*(b/a-1))
}

// cost returns the processor time of the proxy for each decision in a while, in microseconds.
func (p *proxy) cost(t *testing.T, sent *atomic.Int64, window time.Duration) float64 {
	t.Helper()
	cpu, n := gauge(t, p.get("/metrics"), "process_cpu_seconds_total"), sent.Load()
	time.Sleep(window)
	return (gauge(t, p.get("/metrics"), "process_cpu_seconds_total") - cpu) * 1e6 / float64(sent.Load()-n)
}

// watchPage reads the samples of the page until ctx ends.
func (p *proxy) watchPage(ctx context.Context, t *testing.T) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.admin+"/api/events", nil)
	if err != nil {
		t.Error(err)
		return
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			t.Error(err)
		}
		return
	}
	defer func() { _ = resp.Body.Close() }()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
	}
}
