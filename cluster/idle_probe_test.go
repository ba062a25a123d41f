package cluster

import (
	"context"
	"testing"
	"time"

	"github.com/limitgate/limitgate/internal/breaker"
	"github.com/limitgate/limitgate/internal/redistest"
	"github.com/limitgate/limitgate/limit"
)

// TestIdleProbe: without a call a breaker closes when the master decides again, and a master that answers and refuses
// writes does not decide.
func TestIdleProbe(t *testing.T) {
	for setting, values := range map[string][2]string{
		"min-replicas-to-write": {"1", "0"},
		"maxmemory":             {"1", "0"},
	} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			node := redistest.Start(t)
			s := openWithOptions(t, Options{Cooldown: 10 * time.Millisecond, DecisionTimeout: time.Second}, node.Addr)
			limits := compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"})
			c := node.Client()
			t.Cleanup(func() { _ = c.Close() })
			if err := c.ConfigSet(t.Context(), setting, values[0]).Err(); err != nil {
				t.Fatal(err)
			}
			untilState(t, s, limits, "t", breaker.Open)
			n := s.top.Load().single
			begun := n.changes[breaker.HalfOpen].Load()
			redistest.Eventually(t, 20*time.Second, "two probes without a call", func() bool { return n.changes[breaker.HalfOpen].Load() >= begun+2 })
			if closed := n.changes[breaker.Closed].Load(); closed > 0 {
				t.Errorf("the breaker closed %d times while the master refuses writes", closed)
			}
			if err := c.ConfigSet(t.Context(), setting, values[1]).Err(); err != nil {
				t.Fatal(err)
			}
			redistest.Eventually(t, 20*time.Second, "the breaker closes", func() bool { return n.breaker.State() == breaker.Closed })
			if it := askOf(s, limits, "t", 5*time.Second); it.Source != limit.SourceStore {
				t.Errorf("behind the probe: %+v", it)
			}
		})
	}
}

// TestIdleProbeOfLateCall: without a further call a master with a closed breaker is reported as failing for a few seconds alone.
func TestIdleProbeOfLateCall(t *testing.T) {
	t.Parallel()
	s := openWithOptions(t, Options{DecisionTimeout: time.Second}, redistest.Start(t).Addr)
	n := s.top.Load().single
	n.reportHealth(context.DeadlineExceeded)
	if n.sick.Load() == 0 {
		t.Fatal("the node does not fail")
	}
	redistest.Eventually(t, 20*time.Second, "the node has recovered", func() bool { return n.sick.Load() == 0 })
	if state := n.breaker.State(); state != breaker.Closed {
		t.Errorf("its breaker is %s", state)
	}
}

// TestIdleProbeOfNoBucket: a value that is no bucket, in the place of the probe's, is no fault of its master.
func TestIdleProbeOfNoBucket(t *testing.T) {
	t.Parallel()
	node := redistest.Start(t)
	s := openWithOptions(t, Options{Cooldown: 10 * time.Millisecond, DecisionTimeout: time.Second}, node.Addr)
	c := node.Client()
	t.Cleanup(func() { _ = c.Close() })
	if err := c.RPush(t.Context(), probePrefix+"0", "x").Err(); err != nil {
		t.Fatal(err)
	}
	node.Stop()
	untilState(t, s, compile(t, spec{ID: "n", By: []string{"tenant"}, Rate: "1000/366d"}), "t", breaker.Open)
	node.Cont()
	redistest.Eventually(t, 20*time.Second, "the breaker closes", func() bool { return s.top.Load().single.breaker.State() == breaker.Closed })
}
