//go:build long

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	tables "github.com/limitgate/limitgate/controlplane/table" // this package has a function named table
	"github.com/limitgate/limitgate/internal/load"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
	"github.com/limitgate/limitgate/memory"
	"github.com/limitgate/limitgate/metrics"
)

const (
	swapRounds = 3
	swapTime   = 4 * time.Second // of each case in each round
	swapRate   = 2_000           // requests a second to the proxy
	stallGoal  = time.Millisecond
	// proxyGC is the GC percentage that `serve` sets, and proxyPause the pause of its
	// compilations.
	proxyGC    = 400
	proxyPause = time.Millisecond
)

// beside is the activity while decisions are measured. It returns how often it occurred.
type beside struct {
	name string
	run  func(ctx context.Context) int
}

// stalls are the times of decisions.
type stalls struct {
	events   int // how often the activity occurred
	all      *hdrhistogram.Histogram
	own      *hdrhistogram.Histogram // without the time during which other processes had the processors, if that is known
	duration time.Duration
}

func newStalls() *stalls {
	h := func() *hdrhistogram.Histogram { return hdrhistogram.New(50, int64(time.Minute), 3) }
	return &stalls{all: h(), own: h()}
}

func (s *stalls) String() string {
	text := fmt.Sprintf("%8.0f/s  %s", float64(s.all.TotalCount())/s.duration.Seconds(), tail(s.all))
	if s.own.TotalCount() > 0 {
		text += "  | without what others had of the processors: " + tail(s.own)
	}
	return fmt.Sprintf("%s  (%.1f a second)", text, float64(s.events)/s.duration.Seconds())
}

// tail formats the rare long times.
func tail(h *hdrhistogram.Histogram) string {
	var b strings.Builder
	for _, q := range []float64{50, 99, 99.9, 99.99} {
		fmt.Fprintf(&b, "p%g %v  ", q, micros(h.ValueAtQuantile(q)))
	}
	over := int64(0)
	for _, bar := range h.Distribution() {
		if bar.From > int64(stallGoal) {
			over += bar.Count
		}
	}
	fmt.Fprintf(&b, "max %v  over %s: %d", micros(h.Max()), stallGoal, over)
	return b.String()
}

func micros(ns int64) time.Duration { return time.Duration(ns).Round(100 * time.Nanosecond) }

// compare measures each case in turn, several times, and prints them side by side.
func compare(t *testing.T, cases []beside, measure func(time.Duration, *stalls)) {
	t.Helper()
	sums := make([]*stalls, len(cases))
	for round := range swapRounds {
		for i, c := range cases {
			if round == 0 {
				sums[i] = newStalls()
			}
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan int)
			go func() { done <- c.run(ctx) }()
			measure(swapTime, sums[i])
			stop()
			n := <-done
			if i > 0 && n == 0 {
				t.Errorf("%s: it never happened", c.name)
			}
			sums[i].events += n
			sums[i].duration += swapTime
		}
	}
	for i, c := range cases {
		t.Logf("%-34s %s", c.name, sums[i])
	}
}

// runQueues measure how long the threads of this process were runnable and waited for a
// processor: the time that other processes used.
type runQueues []*os.File

func openRunQueues(t *testing.T) (all runQueues) {
	t.Helper()
	paths, err := filepath.Glob("/proc/self/task/*/schedstat")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no threads: %v", err)
	}
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			continue // the thread has ended
		}
		all = append(all, file)
	}
	return all
}

func (q runQueues) close() {
	for _, file := range q {
		_ = file.Close()
	}
}

// waited returns the sum over the threads.
func (q runQueues) waited() (sum time.Duration) {
	var line [64]byte
	for _, file := range q {
		n, _ := file.ReadAt(line[:], 0) // nothing for a thread that has ended
		if fields := bytes.Fields(line[:n]); len(fields) == 3 {
			ns, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			sum += time.Duration(ns)
		}
	}
	return sum
}

// decideFor makes decisions one after the other, on any thread that Go uses. A proxy's
// decisions are not bound to a thread either, and a bound goroutine may have to wait for
// its thread.
func decideFor(t *testing.T, l *limiter.Limiter, names []string, d time.Duration, s *stalls) {
	t.Helper()
	queues := openRunQueues(t)
	defer queues.close()
	const lookAgain, slow = 4096, 100 * time.Microsecond
	var batch limiter.Batch
	waited, begun := queues.waited(), time.Now()
	for i := 0; ; i++ {
		if i%lookAgain == 0 {
			if time.Since(begun) > d {
				return
			}
			waited = queues.waited()
		}
		batch.Requests = append(batch.Requests, limit.Request{Tenant: names[i*7919%len(names)], Cost: 1})
		before := time.Now()
		l.Decide(&batch)
		took := time.Since(before)
		own := took
		if took > slow {
			now := queues.waited()
			own, waited = max(took-(now-waited), 0), now
		}
		_, _ = s.all.RecordValue(int64(took)), s.own.RecordValue(int64(own))
		batch.Reset()
	}
}

// crowdItems returns the items of a table of many tenants.
func crowdItems(t *testing.T, n int) map[string]*tables.Item {
	t.Helper()
	content, err := os.ReadFile(crowdOfTenants(t, n, "free"))
	if err != nil {
		t.Fatal(err)
	}
	parts, err := config.SplitLimits("crowd", content)
	if err != nil {
		t.Fatal(err)
	}
	items := map[string]*tables.Item{}
	for key, body := range parts {
		items[key] = &tables.Item{Key: key, Version: 1, Body: body, Actor: "test", At: time.Now().UTC()}
	}
	return items
}

// planOf returns the next version of a plan, with a limit that identifies it.
func planOf(items map[string]*tables.Item) tables.Item {
	it := items["PLAN#gold"]
	it.Version++
	it.Body = fmt.Appendf(nil, `[{"id":"tenant","by":["tenant"],"rate":"%d/s"}]`, 1000+it.Version)
	return *it
}

// tenantOf returns the next version of a tenant.
func tenantOf(items map[string]*tables.Item, i int) tables.Item {
	it := items[fmt.Sprintf("TENANT#t%07d", i%coldTenants)]
	it.Version++
	it.Body = fmt.Appendf(nil, `{"plan":"gold","overrides":{"tenant":{"rate":"%d/s"}}}`, 2000+it.Version)
	return *it
}

// every calls do at an interval until ctx ends, and returns how often it did.
func every(ctx context.Context, pause time.Duration, do func(i int)) (n int) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return n
		case <-tick.C:
		}
		do(n)
		n++
	}
}

// compileTable compiles the parts of a table, as a proxy does that decides at the same
// time.
func compileTable(parts map[string]json.RawMessage) (*limit.Set, error) {
	set, _, err := config.CompileParts("crowd", parts, limit.CompileOptions{Pause: func() { time.Sleep(proxyPause) }})
	return set, err
}

// followInMemory returns a catalog with items, and a limiter that decides in memory by
// its limits.
func followInMemory(t *testing.T, items map[string]*tables.Item) (*catalog.Catalog, *limiter.Limiter) {
	t.Helper()
	var all []tables.Item
	for _, it := range items {
		all = append(all, *it)
	}
	c := catalog.New(catalog.Options{Name: "crowd", Compile: func(parts map[string]json.RawMessage, _ bool) (*limit.Set, error) { return compileTable(parts) }, Log: slog.New(slog.DiscardHandler)})
	if err := c.Load(all); err != nil {
		t.Fatal(err)
	}
	addrs, err := limit.NewAddrHasher(limit.RandomSecret(), limit.Prefixes{})
	if err != nil {
		t.Fatal(err)
	}
	l := limiter.New(limiter.Options{
		Store: memory.New(memory.Options{}), Backstop: backstop.New(backstop.Options{Instances: func() int { return 1 }}),
		Observer: metrics.NewDecisions(prometheus.NewRegistry()), Addrs: addrs, Timeout: time.Second,
	}, c.Set())
	c.OnChange(l.SetLimits)
	return c, l
}

// compileOnce prints the cost of compiling a table.
func compileOnce(t *testing.T, parts map[string]json.RawMessage) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	if _, _, err := config.CompileParts("crowd", parts, limit.CompileOptions{}); err != nil {
		t.Fatal(err)
	}
	took := time.Since(begun)
	runtime.ReadMemStats(&after)
	begun = time.Now()
	if _, err := compileTable(parts); err != nil {
		t.Fatal(err)
	}
	t.Logf("to compile a table of %d tenants takes %s and makes %d MiB of garbage; %s with the pauses of a proxy that decides meanwhile",
		coldTenants, ms(took), (after.TotalAlloc-before.TotalAlloc)>>20, ms(time.Since(begun)))
}

// TestLongSwap measures how much changes of limits delay decisions, in memory: one
// goroutine makes decisions one after the other while another one runs an activity.
func TestLongSwap(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(proxyGC))
	items := crowdItems(t, coldTenants)
	parts := map[string]json.RawMessage{}
	var names []string
	for key, it := range items {
		parts[key] = it.Body
		if tables.IsTenant(key) {
			names = append(names, tables.Name(key))
		}
	}
	compileOnce(t, parts)
	c, l := followInMemory(t, items)
	compare(t, []beside{
		{"nothing", func(ctx context.Context) int { <-ctx.Done(); return 0 }},
		{"the table is compiled, not used", func(ctx context.Context) (n int) {
			for ; ctx.Err() == nil; n++ {
				if _, err := compileTable(parts); err != nil {
					t.Error(err)
				}
			}
			return n
		}},
		{"the whole table is swapped", func(ctx context.Context) (n int) {
			for ; ctx.Err() == nil; n++ {
				c.Apply([]tables.Item{planOf(items)})
			}
			return n
		}},
		{"one tenant changes at a time", func(ctx context.Context) int {
			return every(ctx, time.Second/changeRate, func(i int) { c.Apply([]tables.Item{tenantOf(items, i)}) })
		}},
	}, func(d time.Duration, s *stalls) { decideFor(t, l, names, d, s) })
	// A tenant with an odd number has the limit of its plan, and the last change was not
	// its own.
	rate, err := bucket.ParseRate(fmt.Sprintf("%d/s", 1000+items["PLAN#gold"].Version))
	if err != nil {
		t.Fatal(err)
	}
	set := l.Limits()
	if got := set.TenantLimits("t0009999"); set != c.Set() || c.Status().Error != "" || len(got) != 1 || got[0].Rate != rate {
		t.Errorf("the last limits are not in use, %s: %+v", c.Status().Error, got)
	}
}

// stallsOfProxy measures the same at a proxy, by requests at a steady pace. Messages
// cause the activity; messages of old versions cost the same and change nothing.
func stallsOfProxy(t *testing.T, s *site, p *proxy) {
	t.Helper()
	items, topic := crowdItems(t, coldTenants), dynamo.NewTopic(s.Config, s.topic)
	gen, err := load.Dial(load.Options{
		Targets: []load.Target{{Addr: p.addr, Conns: 8, Keys: load.Uniform(coldTenants)}},
		Request: load.NewRequest("RL.CHECK", "t"+load.Hole, "-", "-"), Shape: load.Decision, Pipeline: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer gen.Close()
	publish := func(changed ...tables.Item) {
		var messages []tables.Message
		for i := range changed {
			messages = append(messages, tables.Message{Item: &changed[i], At: time.Now().UTC()})
		}
		if _, err := topic.Publish(context.Background(), messages); err != nil {
			t.Error(err)
		}
	}
	tenants := func(next func(i int) tables.Item) func(context.Context) int {
		const batch = 10
		return func(ctx context.Context) int {
			return batch * every(ctx, batch*time.Second/changeRate, func(n int) {
				var changed []tables.Item
				for i := range batch {
					changed = append(changed, next(batch*n+i))
				}
				publish(changed...)
			})
		}
	}
	old := *items["TENANT#t0000001"]
	compare(t, []beside{
		{"nothing", func(ctx context.Context) int { <-ctx.Done(); return 0 }},
		{"old items are published", tenants(func(int) tables.Item { return old })},
		{"the whole table is swapped", func(ctx context.Context) int {
			return every(ctx, time.Second/4, func(int) { publish(planOf(items)) })
		}},
		{"tenants change, ten at a time", tenants(func(i int) tables.Item { return tenantOf(items, i) })},
	}, func(d time.Duration, sum *stalls) {
		out, err := gen.Run(t.Context(), load.Load{Duration: d, Rate: swapRate})
		if err != nil {
			t.Fatal(err)
		}
		if out.Errors > 0 {
			t.Errorf("%d errors", out.Errors)
		}
		sum.all.Merge(out.Latency)
	})
	enforce(t, "t0009999", 1000+items["PLAN#gold"].Version, p)
}
