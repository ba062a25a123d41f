package proxy

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
)

// setOf returns limits of one plan.
func setOf(t testing.TB, limits string) *limit.Set {
	set, _, err := config.ParseLimits("f", []byte("version: 1\ndefault_plan: p\nplans: {p: ["+limits+"]}\ntenants: {\"null\": {}}\n"), limit.CompileOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestRawPaths: operations that differ in numbers alone make one route, and templates, versions and names make
// none.
func TestRawPaths(t *testing.T) {
	var raw, templates []string
	for i := range 100 {
		raw = append(raw, fmt.Sprintf("GET /v1/users/%d/posts?page=%d", i, i))
		templates = append(templates, "GET /v2/"+fmt.Sprint(string(rune('a'+i%26)), string(rune('a'+i/26)))+"/{id}", fmt.Sprintf("job-%d", i))
	}
	raw = append(raw, "GET /orders/6f1c2d5e-1", "GET /orders/6f1c2d5e-2")
	set := setOf(t, `{id: off, by: [tenant, op], mode: off, rate: 1/s}, {id: get, by: [tenant, op], group: g, when: {op: "GET /*"}, rate: 1/s}, {id: one, by: [tenant, op, user], when: {op: DELETE /a}, group: x, rate: 1/s}`)
	for name, row := range map[string]struct {
		ops   []string
		route string
		n     int
	}{
		"none":      {nil, "", 0},
		"raw paths": {raw, "GET /v1/users/{id}/posts", 100},
		"templates": {templates, "", 0},
		"queries":   {[]string{"GET /?q=a", "GET /?q=b", "GET /x"}, "GET /", 2},
		"gRPC":      {[]string{"/acme.s1.v1.Api/List", "/acme.s2.v1.Api/List"}, "", 0},
		"others":    {[]string{"DELETE /a/1", "DELETE /a/2", "GET /a/1"}, "GET /a/{id}", 1},
		"years":     {[]string{"GET /2024/report", "GET /2025/report", "-", ""}, "GET /{id}/report", 2},
	} {
		var ops []limiter.HotOperation
		for _, op := range row.ops {
			ops = append(ops, limiter.HotOperation{Operation: op})
		}
		if route, n := rawPaths(ops, limitsByOp(set), nil); route != row.route || n != row.n {
			t.Errorf("%s: %q, %d times", name, route, n)
		}
	}
}

// fixedLimits are limits that never change.
type fixedLimits struct {
	limitsSource
	set *limit.Set
}

func (f fixedLimits) Set() *limit.Set { return f.set }

// rawPathsWatch is a proxy that watches for raw paths, and the lines of its log.
type rawPathsWatch struct {
	limiter *limiter.Limiter
	batch   limiter.Batch
	lines   strings.Builder
	stop    func() (lines string)
}

// startRawPathsWatch starts a proxy with limits that watches for raw paths.
func startRawPathsWatch(t *testing.T, set *limit.Set) *rawPathsWatch {
	w := &rawPathsWatch{limiter: limiter.New(limiter.Options{Store: memory.New(memory.Options{}), Timeout: time.Second}, set)}
	p := &Proxy{limiter: w.limiter, limits: fixedLimits{set: set}, log: slog.New(slog.NewTextHandler(&w.lines, nil))}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.watchRawPaths(ctx) }()
	w.stop = func() string {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		return w.lines.String()
	}
	return w
}

// decide decides a request of an op.
func (w *rawPathsWatch) decide(op string) {
	w.batch.Reset()
	w.batch.Requests = append(w.batch.Requests, limit.Request{Tenant: "t", Op: op, Cost: 1})
	w.limiter.Decide(&w.batch)
}

// TestWatchRawPaths: raw paths make one line an hour for each route where a limit counts by op, and none elsewhere.
func TestWatchRawPaths(t *testing.T) {
	for by, want := range map[string]int{"[tenant]": 0, "[tenant, op]": 2} {
		set := setOf(t, "{id: a, by: "+by+", rate: 1000/s}")
		synctest.Test(t, func(t *testing.T) {
			w := startRawPathsWatch(t, set)
			for end := time.Now().Add(90 * time.Minute); time.Now().Before(end); time.Sleep(3 * time.Second) {
				for i := range 2 * manyRawPaths {
					w.decide(fmt.Sprintf("GET /%s/%d", [2]string{"users", "parcels"}[i%2], i))
				}
			}
			got := w.stop()
			if users, parcels := strings.Count(got, "ops=64 route=\"GET /users/{id}\"\n"), strings.Count(got, "ops=64 route=\"GET /parcels/{id}\"\n"); users != want || parcels != want || strings.Count(got, "\n") != 2*want {
				t.Errorf("%s: %s", by, got)
			}
		})
	}
}

// TestWatchManyRawPaths: of many routes at most mostRawPaths have a line within an hour, each one.
func TestWatchManyRawPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		set := setOf(t, "{id: a, by: [tenant, op], rate: 1000/s}")
		w := startRawPathsWatch(t, set)
		for n := range 20 * 20 { // one route in each 20 s, for twice an hour and more
			for i := range 2 * manyRawPaths {
				w.decide(fmt.Sprintf("GET /%c/%d", 'a'+n%20, i))
			}
			time.Sleep(rawPathsQuiet / 180)
			if n == 179 {
				if got := strings.Count(w.lines.String(), "\n"); got != mostRawPaths {
					t.Errorf("%d lines in an hour", got)
				}
			}
		}
		times := map[string]time.Time{}
		for line := range strings.Lines(w.stop()) {
			at, err := time.Parse("time=2006-01-02T15:04:05.000Z07:00", strings.Fields(line)[0])
			_, route, _ := strings.Cut(line, "route=")
			if err != nil || at.Sub(times[route]) < rawPathsQuiet {
				t.Errorf("%v: %s after %v", err, line, times[route])
			}
			times[route] = at
		}
	})
}
