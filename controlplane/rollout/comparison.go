// Package rollout tries limits on some tenants before all have them. It promises that
// limits that deny more than those they are to replace, on the same requests, are found
// out, whoever else shares the limits, and without a word to the store.
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
	// step is how long requests are counted together, and steps how many of them are
	// looked at: a minute, so that one burst does not decide.
	step  = 10 * time.Second
	steps = 6
	// requestsLeast is how many requests there have to be in that time: of fewer each
	// would be more than half a percent.
	requestsLeast = 200
	// buckets bounds the buckets of each of the two sides, and so their memory: some
	// 16 MB.
	buckets = 1 << 16
	// timeout is of decisions that wait for nobody.
	timeout = time.Minute
)

// Options configure a Comparison.
type Options struct {
	// Addrs hashes addresses.
	Addrs *limit.AddrHasher
	// Instances returns how many proxies share the limits: each side gets that part of
	// them, on any goroutine.
	Instances func() int
	// Worse is called when the limits that are tried deny too much, at most once for
	// those of a version, on a goroutine that decides: it must not wait.
	Worse func(Stats)
	Now   func() time.Time // nil means the clock of this machine
}

// Stats are what the two sides have said to the same requests in the last minute.
type Stats struct {
	Version                 string // of the limits that are tried
	Requests                int64
	DeniedNow, DeniedBefore int64
	Threshold               float64 // see Comparison.Begin
}

// Excess returns by how much the share of requests that are denied has grown, -1 to 1.
func (f *Stats) Excess() float64 {
	return float64(f.DeniedNow-f.DeniedBefore) / float64(max(1, f.Requests))
}

// Worse reports whether that is too much.
func (f *Stats) Worse() bool { return f.Requests >= requestsLeast && f.Excess() > f.Threshold }

// String says it in a sentence.
func (f *Stats) String() string {
	return fmt.Sprintf("of %d requests in a minute they deny %.1f %%, those before would have denied %.1f %%: more than %.1f points above",
		f.Requests, 100*float64(f.DeniedNow)/float64(max(1, f.Requests)), 100*float64(f.DeniedBefore)/float64(max(1, f.Requests)), 100*f.Threshold)
}

// Comparison decides each request that limits on trial decide twice more: by them and by
// those that they are to replace, both in memory, by this instance's part of them. So
// both see the same requests, and none sees what the other one did. Any number of
// goroutines may use it.
type Comparison struct {
	opts    Options
	batches sync.Pool
	begin   sync.Mutex // has trials begin one after the other

	mu      sync.Mutex       // guards what follows
	before  *limiter.Limiter // nil while nothing is tried, as now is
	now     *limiter.Limiter
	figures Stats // of all steps
	steps   [steps]Stats
	at      int // the step that is filled
	until   time.Time
	told    bool // Worse was called
}

// New returns a comparison of nothing yet.
func New(opts Options) *Comparison {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	return &Comparison{opts: opts, batches: sync.Pool{New: func() any { return &limiter.Batch{} }}}
}

// Begin has the limits on trial of a set watched, which may be none. Threshold is by how
// much of all requests, 0 to 1, they may deny more than those before. What was counted of
// the same version stays.
func (c *Comparison) Begin(set *limit.Set, threshold float64) {
	c.begin.Lock()
	defer c.begin.Unlock()
	next, _ := set.Trial()
	c.mu.Lock()
	known := c.now != nil && next != nil && c.figures.Version == next.Version
	c.mu.Unlock()
	var before, now *limiter.Limiter
	if next != nil && !known { // which takes a while
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
		c.steps, c.told, c.until = [steps]Stats{}, false, c.opts.Now().Add(step)
		c.figures = Stats{Version: next.Version}
	}
	c.figures.Threshold = threshold
}

// newSide returns a limiter that asks nobody.
func (c *Comparison) newSide(set *limit.Set) *limiter.Limiter {
	shares := backstop.New(backstop.Options{Instances: c.opts.Instances, Buckets: buckets})
	return limiter.New(limiter.Options{
		Store: localStore{shares}, Backstop: shares, Addrs: c.opts.Addrs, Timeout: timeout, Instances: c.opts.Instances, Now: c.opts.Now,
	}, set)
}

// Observe decides a request by both sides. What is held and settled later, what has an id, by
// which it may be a repetition, and what brings limits of its own is left out: the two sides
// could not know what became of it.
func (c *Comparison) Observe(_ *limit.Set, req *limit.Request) {
	if req.Inline != nil || req.Hold != limit.HoldNone || req.ID != "" {
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
	if c.now != now { // another trial has begun
		c.mu.Unlock()
		return
	}
	c.count(deniedBefore, deniedNow)
	worse := !c.told && c.figures.Worse()
	c.told = c.told || worse
	figures := c.figures
	c.mu.Unlock()
	if worse && c.opts.Worse != nil {
		c.opts.Worse(figures)
	}
}

// denies decides a request, alone.
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

// age forgets what is too old. The caller holds mu.
func (c *Comparison) age() {
	for now := c.opts.Now(); !now.Before(c.until); c.until = c.until.Add(step) {
		if now.Sub(c.until) > steps*step { // nothing was asked for long
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

// Figures returns what was counted of the limits that are tried now.
func (c *Comparison) Figures() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now != nil {
		c.age()
		c.sum()
	}
	return c.figures
}
