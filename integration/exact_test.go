package integration

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/redistest"
)

const exactLimits = `
version: 1
default_plan: p
plans:
  p:
    - {id: bucket, by: [tenant, op], when: {op: bucket}, rate: 1/h, burst: 1000}
    - {id: sliding, by: [tenant, op], when: {op: sliding}, rate: 1000/366d, algorithm: sliding_window}
    - {id: fixed, by: [tenant, op], when: {op: fixed}, rate: 1000/366d, algorithm: fixed_window}
    - {id: calendar, by: [tenant, op], when: {op: calendar}, rate: 1000/month, algorithm: fixed_window}
    - {id: roomy, by: [tenant], group: roomy, rate: 1000000/366d, algorithm: fixed_window}
`

// hammer sends total checks of one unit from 200 goroutines over 4 connections to each
// proxy, and returns how many were admitted. Every decision must come from the store.
func hammer(t *testing.T, proxies []*proxy, tenant, op string, total int) int64 {
	t.Helper()
	const goroutines, conns = 200, 4
	var clients []*redis.Client
	for _, p := range proxies {
		for range conns {
			c := redis.NewClient(&redis.Options{Addr: p.addr, PoolSize: 1, MaxRetries: -1, PipelinePoolSize: -1, ReadTimeout: 60e9, WriteTimeout: 60e9, PoolTimeout: 60e9})
			clients = append(clients, c)
			defer func() { _ = c.Close() }()
		}
	}
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			c := clients[g%len(clients)]
			for range total / goroutines {
				v, err := check(c, tenant, op, "-", 1)
				if err != nil {
					t.Error(err)
					return
				}
				if v.source != "store" && (v.source != "cache" || v.allowed) {
					t.Errorf("decided by %s", v.source)
				}
				if v.allowed {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return admitted.Load()
}

// TestExactlyNCluster: three proxies on a cluster of three masters admit exactly 1000
// from one bucket, for each algorithm.
func TestExactlyNCluster(t *testing.T) {
	c := redistest.SharedCluster(t)
	limits := writeLimits(t, exactLimits)
	var proxies []*proxy
	for range 3 {
		proxies = append(proxies, serve(t, limits, append(exact, "--redis", strings.Join(c.Addrs(), ","))...))
	}
	for _, op := range []string{"bucket", "sliding", "fixed", "calendar"} {
		if n := hammer(t, proxies, "exact", op, 1400); n != 1000 {
			t.Errorf("%s: admitted %d, want exactly 1000", op, n)
		}
	}
	// All or nothing: the loose limit was charged only for admitted checks.
	client := proxies[0].client()
	roomy, err := asVerdict(client.Do(context.Background(), "RL.PEEK", "exact", "-", "-", 1))
	if err != nil || roomy.left != 1_000_000-4000-1 {
		t.Errorf("the roomy limit has %d left, want %d: %v", roomy.left, 1_000_000-4000-1, err)
	}
	redistest.AssertAllKeysExpire(t, c.Masters(t)...)
}

// TestExactlyNMemory does the same on the memory store of one proxy.
func TestExactlyNMemory(t *testing.T) {
	proxies := []*proxy{serve(t, writeLimits(t, exactLimits), exact...)}
	for _, op := range []string{"bucket", "sliding", "fixed", "calendar"} {
		if n := hammer(t, proxies, "exact", op, 1400); n != 1000 {
			t.Errorf("%s: admitted %d, want exactly 1000", op, n)
		}
	}
}

// TestShadowBeside: a shadow limit changes no reply, request by request.
func TestShadowBeside(t *testing.T) {
	base := "version: 1\ndefault_plan: p\nplans:\n  p:\n    - {id: real, by: [tenant], rate: 20/366d, algorithm: fixed_window}\n"
	alone := serve(t, writeLimits(t, base), exact...).client()
	beside := serve(t, writeLimits(t, base+"    - {id: trial, by: [tenant], rate: 3/366d, algorithm: fixed_window, mode: shadow}\n"), exact...)
	client := beside.client()
	for i := range 50 {
		want, err1 := check(alone, "t", "-", "-", 1+i%3)
		got, err2 := check(client, "t", "-", "-", 1+i%3)
		want.reset, got.reset, want.wait, got.wait = 0, 0, 0, 0 // the clock moves between the two
		if err1 != nil || err2 != nil || got != want {
			t.Errorf("request %d: %+v beside a shadow limit, %+v without (%v, %v)", i, got, want, err1, err2)
		}
	}
	if m := beside.get("/metrics"); !strings.Contains(m, `limitgate_decisions_total{limit="trial",mode="shadow",source="store",verdict="would_deny"}`) {
		t.Errorf("no would_deny in the metrics:\n%s", m)
	}
}
