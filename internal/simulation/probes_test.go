package simulation

import (
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
)

// evenly is how many of the probes of all proxies fall into one bin when they are evenly
// distributed over the time over which the breakers of a fleet spread them.
const evenly = proxyCount * binTime * 5 / float64(breaker.DefaultCooldown/time.Microsecond)

// mostProbes bounds the probes in a bin. Each breaker draws the time of its probe evenly
// from 20 bins, independently, and the wait for a request that is added does not depend
// on the draw: so each falls into a given bin with a probability of at most 1/20, and in
// a bin there are no more than in a Binomial(500, 1/20), 25 in the mean. That is over 75
// with a probability below 1e-15.
const mostProbes = 3 * evenly

// probeTogether returns the times of the probes of breakers that opened in the same
// millisecond and get a request every millisecond, and whose shard is back by the first
// probe: only their own randomness spreads them.
func probeTogether(random func() float64) histogram {
	var probes histogram
	now, epoch := int64(0), time.Unix(0, 0)
	var all []*breaker.Breaker
	for range proxyCount {
		all = append(all, breaker.New(breaker.Options{Random: random, Changed: func(t breaker.Transition) {
			if t.To == breaker.HalfOpen {
				probes.add(now)
			}
		}}))
	}
	for ; now < 2*second-second/2; now += 1000 {
		for _, b := range all {
			at := epoch.Add(time.Duration(now) * time.Microsecond)
			switch {
			case !b.Allow(at):
			case now < second/2: // well out before the first probe
				b.Record(at, breaker.Outcome{Failed: 1, Err: errOverdue})
			default:
				b.Record(at, breaker.Outcome{OK: 1})
			}
		}
	}
	return probes
}
