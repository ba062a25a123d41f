// Package rollout tries limits on some tenants before all get them. It promises to
// detect limits that deny more than those they are to replace, on the same requests,
// whatever other proxies admit, and without calls to the store.
package rollout

import (
	"fmt"
	"sync"
	"time"

	"github.com/limitgate/limitgate/backstop"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

const (
	// step is the length of a counting step, and steps is how many of them are
	// compared: a minute, so that one burst does not decide.
	step  = 10 * time.Second
	steps = 6
	// requestsLeast is how many requests are needed in that time: each of fewer
	// requests would be more than half a percent.
	requestsLeast = 200
	// buckets bounds the buckets of each of the two sides, and so their memory: some 16
	// MB.
	buckets = 1 << 16
	// timeout is the timeout of decisions that never wait.
	timeout = time.Minute
)

// Options configure a Comparison.
type Options struct {
	// Addrs hashes addresses.
	Addrs *limit.AddrHasher
	// Instances returns how many proxies share the limits: each side gets that part of
	// them. It is called on any goroutine.
	Instances func() int
	// Worse is called when the new limits deny too much, at most once for each version.
	// It is called on a goroutine that decides, and must not wait.
	Worse func(Stats)
	Now   func() time.Time // nil means the clock of this machine
}

// Stats are the decisions of the two sides about the same requests in the last minute.
type Stats struct {
	Version                 string // of the new limits
	Requests                int64
	DeniedNow, DeniedBefore int64
	Threshold               float64 // see Comparison.Begin
}

// Excess returns by how much the share of denied requests has grown, -1 to 1.
func (f *Stats) Excess() float64 {
	return float64(f.DeniedNow-f.DeniedBefore) / float64(max(1, f.Requests))
}

// Worse reports whether Excess is above the threshold, with enough requests.
func (f *Stats) Worse() bool { return f.Requests >= requestsLeast && f.Excess() > f.Threshold }

// String describes the stats in a sentence.
func (f *Stats) String() string {
	return fmt.Sprintf("of %d requests in a minute, the new limits deny %.1f %% and the old ones would have denied %.1f %%: more than %.1f points above",
		f.Requests, 100*float64(f.DeniedNow)/float64(max(1, f.Requests)), 100*float64(f.DeniedBefore)/float64(max(1, f.Requests)), 100*f.Threshold)
}

// Comparison decides each request of the canary twice more: by the new limits and by
// those that they are to replace, both in memory, by this instance's part of them. So
// both sides see the same requests, and neither sees the effects of the other. Any
// number of goroutines may use it.
type Comparison struct {
	opts    Options
	batches sync.Pool
	begin   sync.Mutex // serializes Begin

	mu       sync.Mutex       // guards the fields below
	before   *limiter.Limiter // nil, like now, while there is no canary
	now      *limiter.Limiter
	figures  Stats // of all steps
	steps    [steps]Stats
	at       int // the index of the present step
	until    time.Time
	reported bool // Worse was called
}

// New returns a comparison without a canary.
func New(opts Options) *Comparison {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Comparison{opts: opts, batches: sync.Pool{New: func() any { return &limiter.Batch{} }}}
}

// Begin starts to watch the canary of a set, which may have none. Threshold is by how
// much of all requests, 0 to 1, the new limits may deny more than the old ones. Counts
// of the same version stay.
func (c *Comparison) Begin(set *limit.Set, threshold float64) {
	c.begin.Lock()
	defer c.begin.Unlock()
	next, _ := set.Trial()
	c.mu.Lock()
	known := c.now != nil && next != nil && c.figures.Version == next.Version
	c.mu.Unlock()
	var before, now *limiter.Limiter
	if next != nil && !known { // this takes a while
		before, now = c.newSide(set.WithoutTrial()), c.newSide(next)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case next == nil:
		c.before, c.now, c.figures = nil, nil, Stats{}
		return
	case known:
		c.before.SetLimits(set.WithoutTrial())
		c.now.SetLimits(next)
	default:
		c.before, c.now = before, now
		c.steps, c.reported, c.until = [steps]Stats{}, false, c.opts.Now().Add(step)
		c.figures = Stats{Version: next.Version}
	}
	c.figures.Threshold = threshold
}

// newSide returns a limiter that calls no store.
func (c *Comparison) newSide(set *limit.Set) *limiter.Limiter {
	shares := backstop.New(backstop.Options{Instances: c.opts.Instances, Buckets: buckets})
	return limiter.New(limiter.Options{
		Store: localStore{shares}, Backstop: shares, Addrs: c.opts.Addrs, Timeout: timeout, Instances: c.opts.Instances, Now: c.opts.Now,
	}, set)
}

// Observe decides a request by both sides. Reservations, slot requests, requests with
// an ID and requests with inline limits are excluded from the comparison: the two sides
// do not see how a reservation is settled, nor whether an ID is a repetition.
func (c *Comparison) Observe(_ *limit.Set, req *limit.Request) {
	if req.Bypass || req.CarriesLimits() || req.Hold != limit.HoldNone || req.ID != "" {
		return
	}
	c.mu.Lock()
	before, now := c.before, c.now
	c.mu.Unlock()
	if before == nil {
		return
	}
	deniedBefore, deniedNow := c.denies(before, req), c.denies(now, req)
	c.mu.Lock()
	if c.now != now { // another canary has begun
		c.mu.Unlock()
		return
	}
	c.count(deniedBefore, deniedNow)
	worse := !c.reported && c.figures.Worse()
	c.reported = c.reported || worse
	figures := c.figures
	c.mu.Unlock()
	if worse && c.opts.Worse != nil {
		c.opts.Worse(figures)
	}
}

// denies decides a request by itself.
func (c *Comparison) denies(l *limiter.Limiter, req *limit.Request) bool {
	b := c.batches.Get().(*limiter.Batch)
	defer c.batches.Put(b)
	b.Reset()
	b.Requests = append(b.Requests, *req)
	l.Decide(b)
	return !b.Decisions[0].Allowed
}

// count counts a request. The caller holds mu.
func (c *Comparison) count(deniedBefore, deniedNow bool) {
	c.age()
	s := &c.steps[c.at]
	s.Requests++
	if deniedBefore {
		s.DeniedBefore++
	}
	if deniedNow {
		s.DeniedNow++
	}
	c.sum()
}

// age drops old steps. The caller holds mu.
func (c *Comparison) age() {
	for now := c.opts.Now(); !now.Before(c.until); c.until = c.until.Add(step) {
		if now.Sub(c.until) > steps*step { // no request for a long time
			c.until = now
			c.steps = [steps]Stats{}
		}
		c.at = (c.at + 1) % steps
		c.steps[c.at] = Stats{}
	}
}

// sum adds the steps up. The caller holds mu.
func (c *Comparison) sum() {
	f := Stats{Version: c.figures.Version, Threshold: c.figures.Threshold}
	for i := range c.steps {
		f.Requests, f.DeniedNow, f.DeniedBefore = f.Requests+c.steps[i].Requests, f.DeniedNow+c.steps[i].DeniedNow, f.DeniedBefore+c.steps[i].DeniedBefore
	}
	c.figures = f
}

// Figures returns the stats of the present canary.
func (c *Comparison) Figures() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		c.age()
		c.sum()
	}
	return c.figures
}
