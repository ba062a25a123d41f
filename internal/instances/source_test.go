package instances

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// heart is a store that counts its calls.
type heart struct {
	mu    sync.Mutex
	beats []time.Time
	n     int
	err   error
	hangs bool
	left  int
}

func (h *heart) Beat(ctx context.Context) (int, error) {
	h.mu.Lock()
	h.beats = append(h.beats, time.Now())
	n, err, hangs := h.n, h.err, h.hangs
	h.mu.Unlock()
	if hangs {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return n, err
}

func (h *heart) Leave(ctx context.Context) error {
	h.left++
	if h.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return ctx.Err()
}

func (h *heart) set(n int, err error, hangs bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.n, h.err, h.hangs = n, err, hangs
}

// beating runs a count of a heart, and returns a function that ends it.
func beating(t *testing.T, h *heart) (*Count, func()) {
	t.Helper()
	c := New(Options{Source: Heartbeat(h)})
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	return c, func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestHeartbeat checks that a source beats once a second or a little more often, not in
// step, that it continues after failures, and that it leaves at the end.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heart{n: 3}
		c, stop := beating(t, h)
		for _, s := range []struct {
			n     int
			err   error
			hangs bool
			want  int
		}{{3, nil, false, 3}, {0, errTest, false, 3}, {2, nil, false, 2}, {9, nil, true, 2}, {4, nil, false, 4}} {
			h.set(s.n, s.err, s.hangs)
			time.Sleep(fallTime + 3*time.Second)
			if c.Healthy() != s.want {
				t.Errorf("%+v: %d", s, c.Healthy())
			}
		}
		before := len(h.beats)
		stop()
		if h.left != 1 || len(h.beats) != before {
			t.Errorf("%d calls of Leave, and %d of Beat after the end", h.left, len(h.beats)-before)
		}
		different := map[time.Duration]bool{}
		for i := 1; i < before; i++ {
			gap := h.beats[i].Sub(h.beats[i-1])
			different[gap] = true
			if gap <= heartbeatInterval-heartbeatInterval/spread || gap > 2*heartbeatInterval {
				t.Errorf("%s between two beats", gap)
			}
		}
		if before < 40 || len(different) < before/2 {
			t.Errorf("%d beats, with %d different pauses", before, len(different))
		}
	})
}

// TestHeartbeatLeavesInTime checks that a store that hangs does not keep a proxy from
// ending.
func TestHeartbeatLeavesInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &heart{hangs: true}
		c, stop := beating(t, h)
		time.Sleep(10 * time.Second)
		began := time.Now()
		stop()
		if took := time.Since(began); took > goodbyeTimeout {
			t.Errorf("it took %s to end", took)
		}
		if c.Healthy() != 1 || c.Status().Err == nil {
			t.Errorf("%+v", c.Status())
		}
	})
}
