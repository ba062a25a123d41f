package cluster

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
	"github.com/limitgate/limitgate/limiter"
)

// refuser is a backstop that admits nothing, so that every admission is the store's. It
// counts its calls by tenant key.
type refuser struct {
	mu    sync.Mutex // guards asked
	asked map[string]int
}

func (r *refuser) Decide(at limit.DecisionTime, _ *limit.Request, items []limit.Item, calls []limit.Call) {
	for _, c := range calls {
		r.Share(at, items[c.First:c.Last], true)
	}
}

func (r *refuser) Peek(at limit.DecisionTime, req *limit.Request, items []limit.Item, calls []limit.Call) {
	r.Decide(at, req, items, calls)
}

func (r *refuser) Share(_ limit.DecisionTime, items []limit.Item, _ bool) {
	for i := range items {
		items[i].Verdict, items[i].Source = bucket.Verdict{Wait: 1}, limit.SourceBackstop
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked[string(items[0].Name[:items[0].TagLen])]++
}

func (r *refuser) Reset(context.Context, string, string) (int64, error) { return 0, nil }

func (r *refuser) Forget(string) {}

func (r *refuser) Settle(limit.DecisionTime, *limit.Settlement) bool { return false }

func (r *refuser) Refund([]limit.Item) {}

// total returns the number of calls that the store left undecided.
func (r *refuser) total() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, asked := range r.asked {
		n += asked
	}
	return n
}

// of returns the number of undecided calls of a tenant.
func (r *refuser) of(tenant string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked[limit.TenantKey(tenant)]
}

// load takes units of some tenants from a store, from several connections and without a
// pause, and counts the admitted ones.
type load struct {
	t        *testing.T
	store    *Store
	limiter  *limiter.Limiter
	backstop *refuser
	tenants  []string
	stopped  atomic.Bool
	wg       sync.WaitGroup
	checks   atomic.Int64

	mu       sync.Mutex       // guards the fields below
	admitted map[string]int64 // units by bucket
	times    []pipelineTime
}

// pipelineTime is the duration of a pipeline of checks.
type pipelineTime struct {
	began time.Time
	took  time.Duration
}

// loadUnits is the capacity of each bucket of a load. At loadRate a bucket gains a unit
// only after hours.
const (
	loadUnits = 100_000
	loadRate  = "3200/366d"
)

// loadBuckets is the maximum number of buckets of a check.
const loadBuckets = 3

// loadConns is the number of connections of a load, and loadPipeline the number of checks
// in each of their pipelines.
const (
	loadConns    = 6
	loadPipeline = 12
)

// startLoad starts a load with a deadline for each check.
func startLoad(t *testing.T, s *Store, deadline time.Duration, tenants ...string) *load {
	t.Helper()
	return startLoadOn(t, s, deadline, "open", tenants...)
}

// startLoadOn starts a load on limits that fail open or closed.
func startLoadOn(t *testing.T, s *Store, deadline time.Duration, onError string, tenants ...string) *load {
	t.Helper()
	set := compile(t,
		spec{ID: "tenant", By: []string{"tenant"}, Rate: loadRate, Burst: fmt.Sprint(loadUnits)},
		spec{ID: "other", By: []string{"tenant"}, Rate: loadRate, Burst: fmt.Sprint(loadUnits), OnError: onError},
		spec{ID: "op", By: []string{"tenant", "op"}, Rate: fmt.Sprint(loadUnits, "/366d"), Algorithm: "fixed_window"},
	)
	ld := &load{t: t, store: s, backstop: &refuser{asked: map[string]int{}}, tenants: tenants, admitted: map[string]int64{}}
	ld.limiter = limiter.New(limiter.Options{Store: s, Backstop: ld.backstop, Addrs: testAddrs, Timeout: deadline}, set)
	for range loadConns {
		ld.wg.Go(ld.ask)
	}
	t.Cleanup(ld.stop)
	return ld
}

// ask runs one connection. Costs are 1, so that counts of buckets are counts of units.
func (ld *load) ask() {
	var b limiter.Batch
	for !ld.stopped.Load() {
		b.Reset()
		for range loadPipeline {
			req := limit.Request{Tenant: ld.tenants[rand.IntN(len(ld.tenants))], Cost: 1}
			if rand.IntN(2) == 0 {
				req.Op = "GET /a"
			}
			b.Requests = append(b.Requests, req)
		}
		began := time.Now()
		ld.limiter.Decide(&b)
		ld.note(&b, pipelineTime{began, time.Since(began)})
	}
}

// note records the result of a pipeline.
func (ld *load) note(b *limiter.Batch, took pipelineTime) {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	ld.times = append(ld.times, took)
	for i := range b.Decisions {
		if !b.Decisions[i].Allowed {
			continue
		}
		for _, it := range b.Items(i) {
			ld.admitted[string(it.Name)] += it.Cost
		}
	}
	ld.checks.Add(int64(len(b.Decisions)))
}

// slowest returns the duration of the slowest pipeline.
func (ld *load) slowest() time.Duration {
	ld.mu.Lock()
	defer ld.mu.Unlock()
	longest := time.Duration(0)
	for _, p := range ld.times {
		longest = max(longest, p.took)
	}
	return longest
}

// advance waits until the load has made n more checks.
func (ld *load) advance(n int64) {
	ld.t.Helper()
	was := ld.checks.Load()
	redistest.Eventually(ld.t, 30*time.Second, fmt.Sprint(n, " more checks"), func() bool { return ld.checks.Load()-was >= n })
}

// stop stops the load.
func (ld *load) stop() {
	ld.stopped.Store(true)
	ld.wg.Wait()
}

// balance stops the load and compares the units that the buckets have lost with the
// admitted ones. No bucket may have lost less: that would mean units admitted twice. It
// returns the total of the units that they have lost beyond that.
func (ld *load) balance() (excess int64) {
	ld.t.Helper()
	ld.stop()
	for _, tenant := range ld.tenants {
		for _, it := range ld.peek(limit.Request{Tenant: tenant, Op: "GET /a", Cost: 1}) {
			lost := loadUnits - it.Remaining
			if it.Allowed {
				lost-- // the verdict counts the peeked unit as taken
			}
			admitted := ld.admitted[string(it.Name)]
			if lost < admitted {
				ld.t.Errorf("%s: %d units admitted, but it has lost %d", it.Name, admitted, lost)
			}
			excess += lost - admitted
		}
	}
	return excess
}

// peek reads the buckets of a request, repeating until the store answers.
func (ld *load) peek(req limit.Request) []limit.Item {
	ld.t.Helper()
	var b limit.Buffer
	redistest.Eventually(ld.t, 30*time.Second, "the store tells what is left", func() bool {
		b.Reset()
		ld.limiter.Limits().Resolve(&req, testAddrs, time.Now().UnixMicro(), &b)
		ld.store.Peek(limit.DecisionTime{Start: time.Now(), Timeout: 5 * time.Second}, b.Items, b.Calls)
		return b.Items[0].Source == limit.SourceStore && b.Items[1].Source == limit.SourceStore
	})
	return b.Items
}
