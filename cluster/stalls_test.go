package cluster

import (
	"sync"
	"testing"
	"time"
)

// watchStalls measures how late a timer fires until the returned function is called, which
// returns the maximum: on a busy machine a caller that leaves at its deadline may be that
// late.
func watchStalls(t *testing.T) (longest func() time.Duration) {
	t.Helper()
	const every = 2 * time.Millisecond
	var (
		wg   sync.WaitGroup
		most time.Duration
	)
	stop := make(chan struct{})
	wg.Go(func() {
		timer := time.NewTimer(every)
		defer timer.Stop()
		for began := time.Now(); ; began = time.Now() {
			select {
			case <-stop:
				return
			case <-timer.C:
			}
			most = max(most, time.Since(began)-every)
			timer.Reset(every)
		}
	})
	longest = sync.OnceValue(func() time.Duration {
		close(stop)
		wg.Wait()
		return most
	})
	t.Cleanup(func() { longest() })
	return longest
}
