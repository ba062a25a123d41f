//go:build long

package integration

import (
	"slices"
	"sync"
	"testing"
	"time"
)

// decisions repeatedly requests a decision from a proxy, from start to end.
type decisions struct {
	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	took   []time.Duration
	failed error
}

// decideEvery is the time between two decisions of one client.
const decideEvery = 5 * time.Millisecond

// startDecisions starts the requests. Measurements start when mark is called.
func startDecisions(t *testing.T, p *proxy, tenant string) *decisions {
	t.Helper()
	d := &decisions{stop: make(chan struct{})}
	c := p.client()
	d.done.Go(func() {
		tick := time.NewTicker(decideEvery)
		defer tick.Stop()
		for {
			select {
			case <-d.stop:
				return
			case <-tick.C:
			}
			begun := time.Now()
			_, err := check(c, tenant, "-", "-")
			d.mu.Lock()
			d.took = append(d.took, time.Since(begun))
			if err != nil {
				d.failed = err
			}
			d.mu.Unlock()
		}
	})
	t.Cleanup(d.end)
	return d
}

// mark returns the p50 and p99 of the decisions since the last mark, and their number.
func (d *decisions) mark() (p50, p99 time.Duration, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.Sort(d.took)
	if n = len(d.took); n > 0 {
		p50, p99 = d.took[n/2], d.took[n*99/100]
	}
	d.took = nil
	return p50, p99, n
}

// err returns the error of the first failed decision, if any.
func (d *decisions) err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

func (d *decisions) end() {
	select {
	case <-d.stop:
	default:
		close(d.stop)
	}
	d.done.Wait()
}
