package logwriter

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestDurationText: a line of JSON has the unit of a duration.
func TestDurationText(t *testing.T) {
	var out strings.Builder
	log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{ReplaceAttr: DurationText}))
	log.Warn("store degraded", "for", 90*time.Second, "calls", 3)
	if got, want := out.String(), `"for":"1m30s","calls":3}`; !strings.Contains(got, want) {
		t.Errorf("%s, want %s", got, want)
	}
}
