//go:build long

package integration

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

const (
	replaceClients  = 8
	replacePipeline = 8
	replacePause    = 3 * time.Millisecond // between the pipelines of a client
	// replaceChecks is the number of checks before each replacement and after the last.
	replaceChecks = 8000
	// tightUnits is the capacity of the limits that the traffic exhausts, and ampleUnits
	// that of the limits that it does not.
	tightUnits = 900
	ampleUnits = 200_000
)

// replaceTight are limits that the traffic exhausts, replaceAmple limits that it does
// not.
var (
	replaceTight = map[string]string{
		"tight-bucket":  "rate: 1/h, burst: 900",
		"tight-sliding": "rate: 900/366d, algorithm: sliding_window",
		"tight-fixed":   "rate: 900/366d, algorithm: fixed_window",
		"tight-log":     "rate: 900/30d, algorithm: sliding_log",
	}
	replaceAmple = map[string]string{
		"bucket":  "rate: 1/h, burst: 200000",
		"sliding": "rate: 200000/366d, algorithm: sliding_window",
		"fixed":   "rate: 200000/366d, algorithm: fixed_window",
		"leased":  "rate: 1/h, burst: 200000, lease: auto",
	}
)

// fleet is two proxies behind a load balancer, and the traffic to them.
type fleet struct {
	t      *testing.T
	ops    []string
	checks atomic.Int64
	lost   atomic.Int64 // checks without an ID that may have been decided
	resent atomic.Int64 // checks that were sent again
	leased atomic.Int64 // checks decided from leases

	mu       sync.Mutex // guards proxies and admitted
	proxies  [2]*proxy
	admitted map[string]int
}

// testReplaced replaces both proxies of the earlier release under traffic, and then rolls
// back. Each check that is admitted takes one unit, and none gets an error.
func (u *upgrade) testReplaced(t *testing.T) {
	logging.Disable() // connections are refused, as they must be
	t.Cleanup(logging.Enable)
	f := &fleet{t: t, admitted: map[string]int{}}
	limits := f.writeLimits(earlierBinary(t))
	flags := append(u.store, upgradeExact...)
	start := func(binary string) *proxy { return serveBinary(t, binary, limits, flags...) }
	earlier := earlierBinary(t)
	f.proxies = [2]*proxy{start(earlier), start(earlier)}

	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	stop := func() {
		cancel()
		wg.Wait()
	}
	defer stop() // a failed start or wait ends the test
	for i := range replaceClients {
		wg.Go(func() { f.run(ctx, i) })
	}
	for i, binary := range []string{binaries.release, binaries.release, earlier, earlier} {
		f.await()
		// Clients send to the former proxy until it has ended.
		replacement, former := start(binary), f.pick(i)
		if err := former.stop(syscall.SIGTERM); err != nil {
			t.Errorf("replacement %d: SIGTERM: %v\n%s", i, err, former.output())
		}
		f.swap(i, replacement)
	}
	f.await()
	stop()
	for _, p := range f.proxies {
		if err := p.stop(syscall.SIGTERM); err != nil {
			t.Errorf("SIGTERM: %v\n%s", err, p.output())
		}
	}
	f.compare(start(binaries.release).client())
}

// writeLimits writes the limits of the traffic that the earlier release has.
func (f *fleet) writeLimits(earlier string) string {
	f.t.Helper()
	head := "version: 1\ndefault_plan: p\nplans:\n  p:\n"
	text := head
	for _, limits := range []map[string]string{replaceTight, replaceAmple} {
		for op, fields := range limits {
			line := fmt.Sprintf("    - {id: %s, by: [tenant], group: %s, when: {op: %s}, %s}\n", op, op, op, fields)
			if takesLimit(f.t, earlier, head, line) {
				text, f.ops = text+line, append(f.ops, op)
			}
		}
	}
	return writeLimits(f.t, text)
}

// await waits for more checks.
func (f *fleet) await() {
	f.t.Helper()
	begun := f.checks.Load()
	eventually(f.t, "more checks", func() bool { return f.checks.Load() >= begun+replaceChecks })
}

// swap puts a proxy in the place of the n-th one.
func (f *fleet) swap(n int, p *proxy) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proxies[n%len(f.proxies)] = p
}

// pick returns the n-th proxy.
func (f *fleet) pick(n int) *proxy {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.proxies[n%len(f.proxies)]
}

// run sends pipelines of a client to the proxies in turn until ctx ends.
func (f *fleet) run(ctx context.Context, client int) {
	clients := map[*proxy]*redis.Client{}
	defer func() {
		for _, c := range clients {
			_ = c.Close()
		}
	}()
	for n := 0; ctx.Err() == nil; n++ {
		checks := make([]replaceCheck, replacePipeline)
		for i := range checks {
			checks[i] = newReplaceCheck(f.ops[(n+i)%len(f.ops)], fmt.Sprintf("%d-%d-%d", client, n, i))
		}
		const attempts = 3
		for attempt := 0; len(checks) > 0; attempt++ {
			if attempt == attempts {
				f.t.Errorf("%d checks have no answer after %d attempts", len(checks), attempts)
				return
			}
			p := f.pick(client + n + attempt)
			if clients[p] == nil {
				clients[p] = redis.NewClient(&redis.Options{Addr: p.addr, PoolSize: 1, MaxRetries: -1, DialerRetries: 1, ReadTimeout: time.Minute})
			}
			checks = f.send(clients[p], checks)
		}
		pause(replacePause)
	}
}

// replaceCheck is one check of the traffic.
type replaceCheck struct {
	op    string
	words []any
	id    bool
}

// newReplaceCheck returns a check of an op. A check of a leased limit has no ID: the store
// decides every check that has one.
func newReplaceCheck(op, id string) replaceCheck {
	c := replaceCheck{op: op, words: []any{"RL.CHECK", "replaced", op, "-", 1}}
	if c.id = op != "leased"; c.id {
		c.words = append(c.words, "ID", id)
	}
	return c
}

// send sends checks in one pipeline, and returns those whose connection ended before
// their replies.
func (f *fleet) send(c *redis.Client, checks []replaceCheck) (again []replaceCheck) {
	pipe := c.Pipeline()
	replies := make([]*redis.Cmd, len(checks))
	for i := range checks {
		replies[i] = pipe.Do(context.Background(), checks[i].words...)
	}
	_, _ = pipe.Exec(context.Background())
	for i, reply := range replies {
		v, err := asVerdict(reply)
		var refused redis.Error
		switch {
		case errors.As(err, &refused):
			f.t.Errorf("%v: error reply %v", checks[i].words, err)
		case err != nil:
			again = append(again, checks[i])
			f.resent.Add(1)
			if !checks[i].id && !errors.Is(err, syscall.ECONNREFUSED) {
				f.lost.Add(1)
			}
		default:
			f.count(&checks[i], v)
		}
	}
	return again
}

func (f *fleet) count(c *replaceCheck, v verdict) {
	f.checks.Add(1)
	switch {
	case v.source == "lease" && c.op == "leased":
		f.leased.Add(1)
	case v.source == "store", v.source == "cache" && !v.allowed:
	default:
		f.t.Errorf("%v is decided by %s: %+v", c.words, v.source, v)
	}
	if v.allowed {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.admitted[c.op]++
	}
}

// compare compares the units that the store counts with the checks that were admitted.
func (f *fleet) compare(c *redis.Client) {
	t := f.t
	t.Logf("%d checks, %d decided from leases; %d sent again, of which %d without an ID may have been decided before", f.checks.Load(), f.leased.Load(), f.resent.Load(), f.lost.Load())
	if f.leased.Load() == 0 || f.resent.Load() == 0 {
		t.Error("no check was decided from a lease, or no connection ended under traffic: the run proves little")
	}
	for _, op := range f.ops {
		admitted := f.admitted[op]
		if _, tight := replaceTight[op]; tight {
			if admitted != tightUnits {
				t.Errorf("%s: admitted %d, want exactly %d", op, admitted, tightUnits)
			}
			continue
		}
		v, err := asVerdict(c.Do(t.Context(), "RL.PEEK", "replaced", op, "-", 1))
		taken := ampleUnits - 1 - int(v.left)
		most := admitted // the units that may have been taken
		if op == "leased" {
			most += int(f.lost.Load())
			t.Logf("%d admitted without an ID, for which %d units were taken", admitted, taken)
		}
		if err != nil || v.source != "store" || taken < admitted || taken > most {
			t.Errorf("%s: admitted %d, of which the store counts %d: %+v, %v", op, admitted, taken, v, err)
		}
		if admitted < tightUnits {
			t.Errorf("%s: only %d admitted", op, admitted)
		}
	}
}
