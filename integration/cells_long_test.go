//go:build long

package integration

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/internal/redistest"
)

var (
	ratio   = regexp.MustCompile(`(?m)^limitgate_over_admission_ratio\{quantile="1"\} (\S+)$`)
	urgency = regexp.MustCompile(`(?m)^limitgate_over_admission_level (\d)$`)
)

// TestLongOverAdmission: three cells that do not know of each other admit three times the
// limit, which their reports show and which raises an alarm. When they know of each other
// they admit it once. The test takes two or three minutes, because it measures whole
// minutes.
func TestLongOverAdmission(t *testing.T) {
	s := newSite(t)
	s.push(tableLimits(t, ""), "ann")
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	defer callers.Wait()
	defer stop()
	for i := range 3 {
		p := s.serve(filepath.Join(t.TempDir(), "snapshot"), "--cells-id", fmt.Sprint("c", i), "--cells-table", "cells")
		callers.Go(func() { saturate(ctx, t, p) })
	}
	registry := dynamo.NewRegistry(s.Config, "cells")
	redistest.Eventually(t, 150*time.Second, "all cells have reported", func() bool {
		reports, err := registry.Reports(t.Context())
		return err == nil && len(reports) == 3
	})
	plane, found := launch(t, s.command("controlplane", "--table", "limits", "--topic", s.topic, "--leases", "leases", "--cells", "cells", "--admin", "127.0.0.1:0"), serving)
	plane.admin = found[1]
	measured := func() (times float64, level string) {
		metrics := plane.get("/metrics")
		if m := ratio.FindStringSubmatch(metrics); m != nil {
			times, _ = strconv.ParseFloat(m[1], 64)
		}
		if m := urgency.FindStringSubmatch(metrics); m != nil {
			level = m[1]
		}
		return times, level
	}
	redistest.Eventually(t, 30*time.Second, "the over-admission is an alarm", func() bool {
		_, level := measured()
		return level == "1"
	})
	before, _ := measured()
	redistest.Eventually(t, 150*time.Second, "they admit no more than the limit", func() bool {
		times, level := measured()
		return level == "0" && times < 1.01
	})
	after, _ := measured()
	t.Logf("three cells that do not know of each other admit %.3f times the limit, and %.3f times when they do", before, after)
	if before < 2.8 || before > 3 || after < .9 { // a bucket that is already empty admits its rate and no burst
		t.Errorf("measured %g, and then %g", before, after)
	}
}

// saturate sends a proxy more checks than any part of the limit admits.
func saturate(ctx context.Context, t *testing.T, p *proxy) {
	c := p.client()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		pipe := c.Pipeline()
		for range 10 {
			pipe.Do(ctx, "RL.CHECK", "acme", "-", "-")
		}
		if _, err := pipe.Exec(ctx); err != nil && ctx.Err() == nil {
			t.Error(err)
			return
		}
	}
}
