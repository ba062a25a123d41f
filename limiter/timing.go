package limiter

import (
	"time"

	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
)

// timing reports how long decisions took. A run of decisions that wait for nothing and that is not
// timed counts with the next such run that is. It is not safe for concurrent use.
type timing struct {
	timer latency.Timer
	// run counts the decisions of the present run by source, and untimed those of earlier ones.
	run, untimed [limit.NumSources]int64
}

// report reports the decisions of a run that began at start and had waited before that. A run that
// called the store is always timed: others say nothing about it.
func (t *timing) report(l *Limiter, start time.Time, waited time.Duration, called bool) {
	counts := &t.run
	if !called {
		for source, n := range t.run {
			t.untimed[source] += n
		}
		counts = &t.untimed
	}
	if l.opts.Observer != nil && (called || t.timer.Due(start)) {
		took := l.opts.Now().Sub(start) + waited
		for source, n := range counts {
			if n > 0 {
				l.opts.Observer.Took(limit.Source(source), took, n)
			}
		}
		*counts = [limit.NumSources]int64{}
	}
	t.run = [limit.NumSources]int64{}
}
