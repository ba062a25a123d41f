package limiter

import (
	"time"

	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
)

// timing reports how long decisions took. It is not safe for concurrent use.
type timing struct {
	timer latency.Timer
	// waited reports that the present run waited for the store.
	waited bool
	// delayed counts the decisions of a run that waited, by source, and untimed those of the runs
	// that did not, since one of these was timed.
	delayed, untimed [limit.NumSources]int64
}

// counts returns the counts for the decisions of the present run.
func (t *timing) counts() *[limit.NumSources]int64 {
	if t.waited {
		return &t.delayed
	}
	return &t.untimed
}

// report reports how long the present run took, which began at start and had been queued before that.
// A run that waited is always timed, since the others say nothing about it.
func (t *timing) report(l *Limiter, start time.Time, queued time.Duration) {
	if l.opts.Observer == nil || !t.waited && !t.timer.Due(start) {
		return
	}
	took, counts := l.opts.Now().Sub(start)+queued, t.counts()
	for source, n := range counts {
		if n > 0 {
			l.opts.Observer.Took(limit.Source(source), took, n)
			counts[source] = 0
		}
	}
}
