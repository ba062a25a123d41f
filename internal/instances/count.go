// Package instances counts the proxies that share the limits. The number determines the
// size of leases, and each proxy's share while the store is unavailable: a number that is
// too small admits more than the limit, one that is too large admits less.
package instances

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/logthrottle"
)

const (
	// settleInterval is how often a Count checks whether the store answers, so that it
	// follows a source that reported its number during an outage and not again.
	settleInterval = time.Second
	// fallTime is how long the store must continue to answer before a smaller number
	// becomes the base of the ceiling. The event that removes proxies may be about to
	// affect the store, and an idle proxy notices that late.
	fallTime = 10 * time.Second
	// reportPause is the least time between two log lines about failures of a source, so
	// that a flapping source does not flood the log.
	reportPause = time.Minute
	// awaitLimit bounds how long the start waits for the first number: the proxy must
	// serve even without one.
	awaitLimit = 2 * time.Second
)

// maxInstances bounds the numbers of sources: it is more than any fleet has, and the
// largest number that the settings accept.
const maxInstances = 100_000

// errNone is the error for a number below 1: this proxy is an instance itself.
var errNone = errors.New("the source counts no instances")

// Source reports how many proxies there are.
type Source interface {
	// Run passes each new number to the callback, and an error whenever the source
	// fails, until ctx ends. With an error, n is a number from an earlier time, or 0. Run
	// returns when all its goroutines have ended. It may use the callback from several
	// goroutines.
	Run(ctx context.Context, report func(n int, err error))
}

// Options configure a Count.
type Options struct {
	Source Source
	// Name is the name of the source in the log.
	Name string
	// Ceiling bounds how far the count may fall while the store does not answer: to the
	// last count before, divided by Ceiling. Values below 1 count as 1.
	Ceiling int
	// Answers reports whether the store answers; nil means that it always does. It is
	// called at least once a second, by one goroutine at a time.
	Answers func() bool
	// OfStore reports that the source asks the store. Before its first number a failure of it is not logged while the
	// store does not answer: the line about the store says so.
	OfStore bool
	Log     *slog.Logger // nil for none
}

// Count is the number of proxies that share the limits. It is safe for concurrent use.
type Count struct {
	opts    Options
	healthy atomic.Int64
	errors  atomic.Int64
	first   chan struct{} // closed at the first call of report

	mu       sync.Mutex // guards the fields below
	heard    bool       // first is closed
	latest   int        // the last number of the source, 0 before the first
	last     int        // the last number while the store answered, 0 before the first
	fell     time.Time  // since when latest is less than last while the store answers
	err      error      // the source's error; nil if it does not fail
	reported logthrottle.Throttle
	silent   bool // the present failure is not logged
}

// New returns a count that is 1 until the source reports a number, while Run runs.
func New(opts Options) *Count {
	opts.Ceiling = max(1, opts.Ceiling)
	if opts.Answers == nil {
		opts.Answers = func() bool { return true }
	}
	if opts.Log == nil {
		opts.Log = slog.New(slog.DiscardHandler)
	}
	c := &Count{opts: opts, first: make(chan struct{}), reported: logthrottle.Throttle{Period: reportPause}}
	c.healthy.Store(1)
	return c
}

// Healthy returns how many proxies share the limits, at least 1. It is called for every
// decision and costs an atomic load.
func (c *Count) Healthy() int { return int(c.healthy.Load()) }

// Status is the status of a Count.
type Status struct {
	Healthy int
	Source  string
	// Err is the source's error; nil if it does not fail.
	Err error
	// Errors is how often the source failed.
	Errors int64
}

// Status returns the present status.
func (c *Count) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Status{Healthy: c.Healthy(), Source: c.opts.Name, Err: c.err, Errors: c.errors.Load()}
}

// Run runs the source until ctx ends, and returns when all goroutines have ended. The
// error is always nil.
func (c *Count) Run(ctx context.Context) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { c.opts.Source.Run(ctx, c.logChange) })
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

// WaitFirst returns when the source has reported a number or an error, when ctx ends, or
// after two seconds. A proxy that decides before that would count itself as the only one.
func (c *Count) WaitFirst(ctx context.Context) {
	late := time.NewTimer(awaitLimit)
	defer late.Stop()
	select {
	case <-c.first:
	case <-late.C:
	case <-ctx.Done():
	}
}

// logChange stores a number or an error of the source.
func (c *Count) logChange(n int, err error) {
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
		c.latest = n
		c.settle()
	} else {
		c.errors.Add(1)
		if c.latest == 0 && n > 0 {
			c.latest = n
			c.settle()
		}
	}
	c.report(err)
	c.err = err
}

// settle updates the count. The caller holds mu.
func (c *Count) settle() {
	switch answers := c.opts.Answers(); {
	case c.latest >= c.last && answers:
		c.last, c.fell = c.latest, time.Time{}
	case !answers || c.latest >= c.last:
		c.fell = time.Time{}
	case c.fell.IsZero():
		c.fell = time.Now()
	case time.Since(c.fell) >= fallTime:
		c.last, c.fell = c.latest, time.Time{}
	}
	c.healthy.Store(int64(Bounded(c.latest, c.last, c.opts.Ceiling)))
}

// Bounded returns the count for the last number of a source and the last one while the
// store answered. It is at least 1, and never so small that the shares of last proxies
// exceed ceiling times a limit. Ceiling is at least 1.
func Bounded(latest, last, ceiling int) int { return max(1, latest, (last+ceiling-1)/ceiling) }

// report logs when the source starts to fail and when it works again. The caller holds
// mu.
func (c *Count) report(err error) {
	switch {
	case err != nil && (c.err == nil || c.silent && c.latest == 0):
		c.silent = c.opts.OfStore && c.latest == 0 && !c.opts.Answers() || !c.reported.Allow()
		if !c.silent {
			c.opts.Log.Warn("cannot count instances, keeping the last number", "source", c.opts.Name, "instances", c.Healthy(), "error", err)
		}
	case err == nil && c.err != nil && !c.silent:
		c.opts.Log.Info("counting instances again", "source", c.opts.Name, "instances", c.Healthy())
	}
}
