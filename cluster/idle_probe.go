package cluster

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/limitgate/limitgate/internal/breaker"
)

// idleProbe is for how long an open breaker waits for a call as its probe before a read of the master's mark is one.
// Calls come first, as they show that the script runs; without any the breaker would stay open.
const idleProbe = time.Second

// probeIdle probes the masters whose breakers are open and for which no call comes. Only Run calls it.
func (s *Store) probeIdle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.IOTimeout)
	defer cancel()
	var wg sync.WaitGroup
	for n, key := range s.top.Load().markKeys() {
		st := n.breaker.Status()
		if st.State == breaker.Closed || time.Since(st.Probe) < idleProbe || !n.pipeline.connected() {
			continue
		}
		wg.Go(func() {
			if !n.breaker.Allow(time.Now()) {
				return
			}
			outcome := breaker.Outcome{OK: 1}
			if err := n.client.Get(ctx, key).Err(); err != nil && !errors.Is(err, redis.Nil) {
				outcome = breaker.Outcome{Failed: 1, Err: err}
			}
			n.breaker.Record(time.Now(), outcome)
		})
	}
	wg.Wait()
}
