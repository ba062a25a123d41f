// Package instances knows how many proxies share the limits. The number is part
// of the size of leases, and of each proxy's share while the store is sick: one
// that is too small admits more than the limit, one that is too large less.
package instances

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// settleInterval is how often a Count looks whether the store answers, so that
	// it follows a source that told its number during an outage and then no more.
	settleInterval = time.Second
	// fallTime is how long the store must go on answering for a smaller number to be
	// what the ceiling counts from: what takes proxies away may be about to take the
	// store, and an idle proxy notices that late.
	fallTime = 10 * time.Second
	// reportPause is the least time between two reports that a source fails, so
	// that one which does and does not in turn does not flood the log.
	reportPause = 5 * time.Second
	// awaitLimit bounds how long the start waits for the first number: the proxy
	// is needed, also where nobody can tell it.
	awaitLimit = 2 * time.Second
)

// maxInstances bounds what is believed: more than a fleet has, and what a number in the
// settings may be.
const maxInstances = 100_000

// errNone is why a number is not believed: this proxy is there itself.
var errNone = errors.New("it counts none, and this proxy is one")

// Source tells how many proxies there are.
type Source interface {
	// Run calls tell with the number whenever it is learnt, and with an error
	// whenever it could not be, until ctx ends; with an error the number is one that
	// is remembered from an earlier time, or 0. It returns when all it started has
	// ended. It may call tell from several goroutines.
	Run(ctx context.Context, tell func(n int, err error))
}

// Options configure a Count.
type Options struct {
	Source Source
	// Name is what the source is called in the log.
	Name string
	// Ceiling bounds how far the count may fall while the store does not answer: to
	// the last one before, divided by it. Less than 1 is 1.
	Ceiling int
	// Answers reports whether the store does; nil is a store that always does. It
	// is called at least once a second, by one goroutine at a time.
	Answers func() bool
	Log     *slog.Logger // nil for none
}

// Count knows how many proxies share the limits. Any number of goroutines may
// use it.
type Count struct {
	opts    Options
	healthy atomic.Int64
	errors  atomic.Int64
	first   chan struct{} // closed when the source has told anything

	mu       sync.Mutex // guards what follows
	heard    bool       // first is closed
	told     int        // the last number of the source, 0 before
	last     int        // the last one while the store answered, 0 before
	fell     time.Time  // since when told is less than last while the store answers
	err      error      // why the source fails; nil when it does not
	reported time.Time  // when the log last said so
	silent   bool       // the log says nothing of the present failure
}

// New returns a count that is 1 until the source tells another, while Run runs.
func New(opts Options) *Count {
	opts.Ceiling = max(1, opts.Ceiling)
	if opts.Answers == nil {
		opts.Answers = func() bool { return true }
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	c := &Count{opts: opts, first: make(chan struct{})}
	c.healthy.Store(1)
	return c
}

// Healthy returns how many proxies share the limits, at least 1. It costs an
// atomic load, as it is called for every decision.
func (c *Count) Healthy() int { return int(c.healthy.Load()) }

// Status is what there is to tell of a Count.
type Status struct {
	Healthy int
	Source  string
	// Err says why the source fails; nil when it does not.
	Err error
	// Errors is how often it did.
	Errors int64
}

// Status returns what there is to tell.
func (c *Count) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Status{Healthy: c.Healthy(), Source: c.opts.Name, Err: c.err, Errors: c.errors.Load()}
}

// Run runs the source until ctx ends, and returns when all has ended. The error
// is always nil.
func (c *Count) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.opts.Source.Run(ctx, c.tell) })
	tick := time.NewTicker(settleInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			c.mu.Lock()
			c.settle()
			c.mu.Unlock()
		}
	}
}

// Await returns when the source has told a number or why it cannot, when ctx ends,
// or after two seconds. A proxy that decides before would take itself for the only
// one.
func (c *Count) Await(ctx context.Context) {
	late := time.NewTimer(awaitLimit)
	defer late.Stop()
	select {
	case <-c.first:
	case <-late.C:
	case <-ctx.Done():
	}
}

// tell takes what the source says.
func (c *Count) tell(n int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.heard {
		c.heard = true
		defer close(c.first)
	}
	if err == nil && n < 1 {
		err = errNone
	}
	n = min(n, maxInstances)
	if err == nil {
		c.told = n
		c.settle()
	} else {
		c.errors.Add(1)
		if c.told == 0 && n > 0 {
			c.told = n
			c.settle()
		}
	}
	c.report(err)
	c.err = err
}

// settle works out the number. The caller holds mu.
func (c *Count) settle() {
	switch answers := c.opts.Answers(); {
	case c.told >= c.last && answers:
		c.last, c.fell = c.told, time.Time{}
	case !answers || c.told >= c.last:
		c.fell = time.Time{}
	case c.fell.IsZero():
		c.fell = time.Now()
	case time.Since(c.fell) >= fallTime:
		c.last, c.fell = c.told, time.Time{}
	}
	c.healthy.Store(int64(Bounded(c.told, c.last, c.opts.Ceiling)))
}

// Bounded returns how many proxies are counted where a source told so many and last
// is what it told while the store answered: at least 1, and never so few that the
// shares of last proxies come to more than ceiling times a limit. Ceiling is at least 1.
func Bounded(told, last, ceiling int) int { return max(1, told, (last+ceiling-1)/ceiling) }

// report logs when the source begins to fail and when it works again. The caller
// holds mu.
func (c *Count) report(err error) {
	switch {
	case err != nil && c.err == nil:
		if c.silent = time.Since(c.reported) < reportPause; !c.silent {
			c.reported = time.Now()
			c.opts.Log.Warn("how many proxies there are cannot be learnt, the last number stays", "source", c.opts.Name, "instances", c.Healthy(), "error", err)
		}
	case err == nil && c.err != nil && !c.silent:
		c.opts.Log.Info("how many proxies there are is known again", "source", c.opts.Name, "instances", c.Healthy())
	}
}
