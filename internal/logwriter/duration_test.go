package logwriter

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestDurationText: a line of JSON has the unit of a duration, and other attributes are those of the function inside.
func TestDurationText(t *testing.T) {
	var out strings.Builder
	double := func(_ []string, a slog.Attr) slog.Attr {
		if a.Value.Kind() == slog.KindInt64 {
			return slog.Int64(a.Key, 2*a.Value.Int64())
		}
		return a
	}
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: DurationText(double)}))
	log.Warn("store degraded", "for", 90*time.Second, "calls", 3)
	if got, want := out.String(), `"for":"1m30s","calls":6}`; !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}
