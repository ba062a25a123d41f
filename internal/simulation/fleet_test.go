package simulation

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/instances"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

const (
	// proxyCount is the number of proxies that share the limits.
	proxyCount = 500
	// step is the interval at which the clock by which leases are returned follows that
	// of the fleet, and slower how many times it is slower: looking for expired leases,
	// ten times a second and proxy, would be most of the work.
	step   = 5 * time.Millisecond
	slower = 5
)

// fleet is many proxies in front of many shards. Its decisions happen one after the other
// in its own time; only the limiters' goroutines, which return leases, wake by the clock
// of the bubble in which the test runs, which follows.
type fleet struct {
	mu sync.Mutex // held during an event
	schedule
	now      int64        // microseconds since epoch
	instant  atomic.Int64 // the same for goroutines that do not hold mu
	epoch    time.Time
	random   *rand.Rand
	set      *limit.Set
	tenants  []*tenant
	shards   [shardCount]*shard
	proxies  []*proxy
	requests []*openRequest
	free     []*openRequest
	runs     sync.WaitGroup
	started  int // number of proxies started so far
	// counted is the number of instances of the source, and last the source's number
	// while the store answered.
	counted, last int
	slowUntil     int64 // calls are delayed until then
	cost          int64 // of a request
	report
}

// proxy is one instance.
type proxy struct {
	store *store
	gate  *limiter.Limiter
	stop  context.CancelFunc
}

// openRequest is a request that is not yet answered.
type openRequest struct {
	token  uint64
	proxy  *proxy
	tenant *tenant
	batch  limiter.Batch
}

// newFleet returns a fleet whose proxies run. It must be called within a bubble.
func newFleet(tb testing.TB, seed uint64) *fleet {
	tb.Helper()
	f := &fleet{random: rand.New(rand.NewPCG(seed, 0)), epoch: time.Now(), counted: proxyCount, last: proxyCount, cost: 1}
	f.settle(tb)
	for i := range f.shards {
		f.shards[i] = newShard()
	}
	for range proxyCount {
		f.proxies = append(f.proxies, f.start())
	}
	return f
}

// start starts a proxy without any state.
func (f *fleet) start() *proxy {
	p := &proxy{store: f.newStore()}
	count := func() int { return instances.Bounded(f.counted, f.last, ceiling) }
	p.gate = limiter.New(limiter.Options{
		Store: p.store, Backstop: backstop.New(backstop.Options{Instances: count}), Instances: count,
		Timeout: decisionTime * time.Microsecond, DenyCacheSize: 1000,
		Now: func() time.Time { return f.epoch.Add(time.Duration(f.instant.Load()) * time.Microsecond) },
	}, f.set)
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	// No two proxies wake at the same instant, so that their order is always the same.
	offset := time.Duration(f.started%proxyCount)*100*time.Millisecond/proxyCount + time.Duration(f.started)
	f.started++
	f.runs.Go(func() {
		time.Sleep(offset)
		_ = p.gate.Run(ctx)
	})
	return p
}

// kill ends a proxy at once: it returns no lease, and its calls are dropped.
func (p *proxy) kill() {
	p.store.gone = true
	p.stop()
}

// run runs the fleet until the end, and stops it.
func (f *fleet) run() {
	for f.now < f.end {
		f.mu.Lock()
		until := f.now + step.Microseconds()
		for e, ok := f.next(until); ok; e, ok = f.next(until) {
			f.pass(e.at)
			e.do()
		}
		f.pass(until)
		f.mu.Unlock()
		time.Sleep(step / slower)
	}
	f.mu.Lock()
	for _, p := range f.proxies {
		if !p.store.gone && p.store.breakers[hurt].State() != breaker.Closed {
			f.open++
		}
		p.kill()
	}
	f.mu.Unlock()
	f.runs.Wait()
}

func (f *fleet) pass(now int64) {
	f.now = now
	f.instant.Store(now)
}

func (f *fleet) time() time.Time { return f.epoch.Add(time.Duration(f.now) * time.Microsecond) }

// delay returns the additional travel time of a call.
func (f *fleet) delay() int64 {
	if f.now >= f.slowUntil {
		return 0
	}
	return f.random.Int64N(slowest)
}

// ask makes a proxy decide a request of a tenant.
func (f *fleet) ask(p *proxy, t *tenant, cost int64) {
	var req *openRequest
	if last := len(f.free) - 1; last >= 0 {
		req, f.free = f.free[last], f.free[:last]
	} else {
		req = &openRequest{token: uint64(len(f.requests))}
		f.requests = append(f.requests, req)
	}
	req.proxy, req.tenant = p, t
	req.batch.Requests = append(req.batch.Requests, limit.Request{Tenant: t.name, Cost: cost})
	if p.gate.Start(&req.batch, time.Time{}, f.answered, req.token) {
		f.finish(req)
	}
}

// answered ends a request whose call is answered, or has reached its deadline.
func (f *fleet) answered(token uint64) {
	req := f.requests[token]
	if !req.proxy.gate.Finish(&req.batch) {
		panic("end: the only call of a request is final")
	}
	f.finish(req)
}

// finish counts a decision.
func (f *fleet) finish(req *openRequest) {
	d := &req.batch.Decisions[0]
	at := f.now
	if d.Source == limit.SourceStore {
		at = req.proxy.store.answered // the shard counts by its own time
	}
	if d.Source == limit.SourceBackstop {
		f.lastBackstop = f.now
	}
	req.tenant.count(d, at, req.batch.Requests[0].Cost)
	req.batch.Reset()
	f.free = append(f.free, req)
}

// changed records a transition of a breaker.
func (f *fleet) changed(s *store, shard int, t breaker.Transition) {
	if s.gone || shard != hurt {
		return
	}
	switch {
	case t.To == breaker.HalfOpen:
		f.probes.add(f.now)
	case t.To == breaker.Closed:
		f.lastClosed = f.now
	case t.From == breaker.Closed:
		f.opened++
	}
}
