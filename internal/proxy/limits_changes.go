package proxy

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
)

// changesPause is the least time between two lines about changes of a table.
const changesPause = 5 * time.Second

// changeLog logs how the limits of a table change. The sets that come into use during a pause are one
// line.
type changeLog struct {
	source string
	log    *slog.Logger
	pause  time.Duration
	last   *limit.Set // the last set that was compared; only run uses it
	next   atomic.Pointer[limit.Set]
	wake   chan struct{} // of size 1
}

func newChangeLog(source string, set *limit.Set, log *slog.Logger) *changeLog {
	return &changeLog{source: source, log: log, pause: changesPause, last: set, wake: make(chan struct{}, 1)}
}

// use records that a set came into use. It does not wait for the comparison, which run makes.
func (c *changeLog) use(set *limit.Set) {
	c.next.Store(set)
	select {
	case c.wake <- struct{}{}:
	default: // run is about to look
	}
}

// run logs changes until ctx ends.
func (c *changeLog) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.wake:
		}
		if !c.compare() {
			continue
		}
		if !run.Sleep(ctx, c.pause) {
			return nil
		}
	}
}

// compare logs how the set in use differs from the last one, and reports whether it does.
func (c *changeLog) compare() bool {
	set := c.next.Load()
	changes := limit.Changes(c.last, set)
	c.last = set
	if len(changes) == 0 {
		return false
	}
	trial := ""
	if t, _ := set.Trial(); t != nil {
		trial = t.Version
	}
	c.log.Info(reloaded, append(describeReload(byTableChange, set.Version, c.source, trial), "changes", strings.Join(changes, "; "))...)
	return true
}
