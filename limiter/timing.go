package limiter

import (
	"time"

	"github.com/limitgate/limitgate/internal/latency"
	"github.com/limitgate/limitgate/limit"
)

// timing reports how long decisions took. A run of decisions that is not timed counts with the
// next one that is. It is not safe for concurrent use.
type timing struct {
	timer   latency.Timer
	untimed [limit.NumSources]int64
}

// report reports the decisions since the last report, which took as long as the run that began
// at start and had waited before that.
func (t *timing) report(l *Limiter, start time.Time, waited time.Duration) {
	if l.opts.Observer == nil || !t.timer.Due(start) {
		return
	}
	took := l.opts.Now().Sub(start) + waited
	for source, n := range t.untimed {
		if n > 0 {
			l.opts.Observer.Took(limit.Source(source), took, n)
			t.untimed[source] = 0
		}
	}
}
