package proxy

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchCapped: the first denial by the total rate has a line within a second, those of the minute behind it
// share one, and none has none.
func TestWatchCapped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var capped atomic.Int64
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go watchCapped(ctx, slog.New(slog.NewTextHandler(&log, nil)), 50, capped.Load)
		for _, row := range []struct {
			denied int64
			after  time.Duration
			lines  int
			last   string
		}{
			{0, time.Hour, 0, ""},
			{3, 2 * time.Second, 1, "denied=3 total_rate=50 "},
			{4, 30 * time.Second, 1, "denied=3 total_rate=50 "},
			{1, 40 * time.Second, 2, "denied=5 total_rate=50 "},
			{0, time.Hour, 2, "denied=5 total_rate=50 "},
		} {
			capped.Add(row.denied)
			time.Sleep(row.after)
			synctest.Wait()
			got := log.String()
			lines := strings.SplitAfter(got, "\n")
			if last := lines[max(0, len(lines)-2)]; len(lines)-1 != row.lines || !strings.Contains(last, row.last) {
				t.Errorf("%s after %d denials: %q", row.after, row.denied, got)
			}
		}
	})
}
