package integration

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// The tenants of a scene. The moving ones are written all the time, as is the plan of the
// gold ones. The calm ones are not written; they have a limit of their own, or that of a
// plan that is not written either. The poisoned ones are written by hand, with invalid
// content.
const (
	movingTenants   = 40
	goldTenants     = 10
	calmTenants     = 10
	poisonedTenants = 6
)

// tableScene is a table with its proxies and control planes, and a relay before the
// proxies.
type tableScene struct {
	*site
	redis   *redistest.Node
	relay   *relay
	planes  []*proxy
	proxies []*proxy
	writer  *tenantWriter
	tenants []string
	writing *writing // while a fault is active
	// planeFlags are additional flags of control planes, and planeEnv returns additional
	// environment variables for each of them.
	planeFlags []string
	planeEnv   func() []string
	// untouched are the limits of tenants that must not change.
	untouched map[string]int64
	// good is the valid content of items that were written by hand.
	good map[string]json.RawMessage
}

// newTableScene starts a scene with a number of control planes. Furnish may add to the
// scene before they start, and may be nil.
func newTableScene(t *testing.T, planes int, furnish func(t *testing.T, s *tableScene)) *tableScene {
	t.Helper()
	s := &tableScene{site: newSite(t), redis: redistest.Start(t), untouched: map[string]int64{}, good: map[string]json.RawMessage{}}
	if furnish != nil {
		furnish(t, s)
	}
	s.relay = startRelay(s.site)
	s.push(s.limitsFile(), "ann")
	s.writer = newTenantWriter(s.table)
	items, err := s.table.Scan(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		s.writer.was[it.Key] = it.Version
	}
	for range planes {
		s.planes = append(s.planes, s.plane())
	}
	for range proxies {
		s.proxies = append(s.proxies, s.follow(filepath.Join(t.TempDir(), "snapshot"), s.relay.add(t)))
	}
	return s
}

// limitsFile returns a file with all tenants of the scene.
func (s *tableScene) limitsFile() string {
	var tenants strings.Builder
	add := func(prefix string, n int, entry func(i int) (body string, limit int64)) {
		for i := range n {
			name := fmt.Sprint(prefix, i)
			body, limit := entry(i)
			fmt.Fprintf(&tenants, "%s: %s, ", name, body)
			s.tenants = append(s.tenants, name)
			if limit > 0 {
				s.untouched[name] = limit
			}
		}
	}
	own := func(i int) (string, int64) {
		return fmt.Sprintf("{plan: free, overrides: {tenant: {rate: %d/s}}}", 200+i), int64(200 + i)
	}
	add("moving", movingTenants, func(int) (string, int64) { return "{plan: free}", 0 })
	add("gold", goldTenants, func(int) (string, int64) { return "{plan: gold}", 0 })
	add("calm", calmTenants, own)
	add("silver", calmTenants, func(int) (string, int64) { return "{plan: silver}", 300 })
	add("poisoned", poisonedTenants, own)
	return writeLimits(s.tb, `
version: 1
default_plan: free
plans:
  free: [{id: tenant, by: [tenant], rate: 100/s}]
  gold: [{id: tenant, by: [tenant], rate: 1000/s}]
  silver: [{id: tenant, by: [tenant], rate: 300/s}]
tenants: {`+tenants.String()+`}
`)
}

// plane starts one more control plane.
func (s *tableScene) plane() *proxy {
	s.tb.Helper()
	cmd := s.command(append([]string{"controlplane", "--table", "limits", "--topic", s.topic, "--leases", "leases"}, s.planeFlags...)...)
	if s.planeEnv != nil {
		cmd.Env = append(cmd.Env, s.planeEnv()...)
	}
	p, _ := launch(s.tb, cmd, planeStarted)
	return p
}

// followArgs returns the arguments of a proxy with a queue that the relay fills.
func (s *tableScene) followArgs(snapshot, queue string) []string {
	return append([]string{
		"serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--limits", tableURL, "--updates", queue,
		"--limits-snapshot", snapshot, "--redis", s.redis.Addr,
	}, exact...)
}

// follow starts one more proxy.
func (s *tableScene) follow(snapshot, queue string) *proxy {
	s.tb.Helper()
	p, found := launch(s.tb, s.command(s.followArgs(snapshot, queue)...), listening)
	p.addr, p.admin = found[1], found[2]
	return p
}

// expected returns the expected replies of RL.LIMITS for each tenant, computed from the
// items of the table.
func (s *tableScene) expected(ctx context.Context) (map[string]string, error) {
	items, err := s.table.Scan(ctx)
	if err != nil {
		return nil, err
	}
	parts := map[string]json.RawMessage{}
	for _, it := range items {
		if it.IsLimits() && !it.Deleted {
			parts[it.Key] = it.Body
		}
	}
	for key, body := range s.good {
		parts[key] = body
	}
	set, _, err := config.CompileParts("the table", parts, limit.CompileOptions{})
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for _, tenant := range s.tenants {
		for _, l := range set.TenantLimits(tenant) {
			said[tenant] += fmt.Sprintln(l.ID, l.Describe(), l.Params.Capacity)
		}
	}
	return said, nil
}

// reported returns the replies of a proxy for each tenant.
func (s *tableScene) reported(ctx context.Context, p *proxy) (map[string]string, error) {
	c := p.client()
	defer func() { _ = c.Close() }()
	pipe := c.Pipeline()
	for _, tenant := range s.tenants {
		pipe.Do(ctx, "RL.LIMITS", tenant)
	}
	cmds, err := pipe.Exec(ctx)
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for i, cmd := range cmds {
		reply, _ := cmd.(interface{ Val() any }).Val().(map[any]any)
		limits, ok := reply["limits"].([]any)
		if !ok {
			return nil, fmt.Errorf("RL.LIMITS says %v", reply)
		}
		for _, l := range limits {
			of := l.(map[any]any)
			said[s.tenants[i]] += fmt.Sprintln(of["id"], of["rate"], of["capacity"])
		}
	}
	return said, nil
}

// agreeWithin bounds how long proxies may differ from the table: a lock of ten seconds,
// two digests ten seconds apart, and a minute if messages arrive all the time.
const agreeWithin = 60 * time.Second

// awaitAgreement waits until the replies of all proxies for all tenants agree with the
// table, and returns when that was.
func (s *tableScene) awaitAgreement(t *testing.T, proxies ...*proxy) time.Time {
	t.Helper()
	late := time.Now().Add(agreeWithin)
	for {
		diff := s.difference(t.Context(), proxies)
		if diff == nil {
			return time.Now()
		}
		if time.Now().After(late) {
			for _, p := range slices.Concat(proxies, s.planes) {
				lines := slices.Collect(strings.Lines(p.output()))
				t.Logf("the end of a log:\n%s", strings.Join(lines[max(0, len(lines)-20):], ""))
			}
			t.Fatalf("not within %s: %v", agreeWithin, diff)
		}
		pause(100 * time.Millisecond)
	}
}

// difference returns an error if a proxy differs from the table.
func (s *tableScene) difference(ctx context.Context, proxies []*proxy) error {
	want, err := s.expected(ctx)
	if err != nil {
		return err
	}
	var diffs []error
	for i, p := range proxies {
		got, err := s.reported(ctx, p)
		if err != nil {
			return err
		}
		differ := 0
		var first error
		for _, tenant := range s.tenants {
			if got[tenant] != want[tenant] {
				differ++
				first = fmt.Errorf("proxy %d differs from the table for %d tenants: %s has %q, not %q", i, differ, tenant, got[tenant], want[tenant])
			}
		}
		diffs = append(diffs, first)
	}
	return errors.Join(diffs...)
}

var readAgain = regexp.MustCompile(`were missed, and read again" items=(\d+)`)

// learned counts how proxies received changes.
type learned struct{ byMessage, old, bad, scans, byScan int }

// learned returns the sum over the metrics of the proxies.
func (s *tableScene) learned() (sum learned) {
	for _, p := range s.proxies {
		metrics := p.get("/metrics")
		sum.byMessage += metric(metrics, "limitgate_config_propagation_seconds_count")
		sum.old += metric(metrics, "limitgate_config_out_of_order_total")
		sum.bad += metric(metrics, "limitgate_config_rejected_total")
		sum.scans += metric(metrics, "limitgate_config_repairs_total")
		for _, found := range readAgain.FindAllStringSubmatch(p.output(), -1) {
			n, _ := strconv.Atoi(found[1])
			sum.byScan += n
		}
	}
	return sum
}

// metric returns the value of a metric without labels.
func metric(metrics, name string) int {
	for line := range strings.Lines(metrics) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, _ := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int(n)
		}
	}
	return 0
}

// writing writes moving tenants, some tens a second, and sometimes the gold plan, until
// it is stopped. While AWS is away it retries.
type writing struct {
	stop   chan struct{}
	done   chan struct{}
	mu     sync.Mutex // held during a write, and guards the fields below
	failed int
	last   time.Time
}

const (
	writeEvery   = 30 * time.Millisecond
	writeTimeout = 2 * time.Second
)

// startWriting starts it.
func (s *tableScene) startWriting(ctx context.Context) *writing {
	w := &writing{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(writeEvery)
		defer tick.Stop()
		for n := 0; ; n++ {
			select {
			case <-w.stop:
				return
			case <-tick.C:
			}
			w.write(ctx, s, n)
		}
	}()
	return w
}

func (w *writing) write(ctx context.Context, s *tableScene, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key, body := s.nextWrite(n)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if _, err := s.writer.put(ctx, key, body); err != nil {
		w.failed++
		return
	}
	w.last = time.Now()
}

// nextWrite returns the nth write: mostly a tenant, sometimes a tombstone of one,
// sometimes a plan.
func (s *tableScene) nextWrite(n int) (key, body string) {
	limit := s.writer.limit()
	switch {
	case n%50 == 10:
		return "PLAN#gold", fmt.Sprintf(`[{"id":"tenant","by":["tenant"],"rate":"%d/s"}]`, limit)
	case n%17 == 5:
		return fmt.Sprint("TENANT#moving", n%movingTenants), ""
	}
	return fmt.Sprint("TENANT#moving", n%movingTenants), tenantBody(limit)
}

// end stops it.
func (w *writing) end() {
	close(w.stop)
	<-w.done
}
