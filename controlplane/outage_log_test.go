package controlplane

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// away is a registry of cells and vetoes that cannot be read until a given time.
type away struct {
	*fleet
	until time.Time
}

func (a *away) err() error {
	if time.Now().Before(a.until) {
		return errors.New("away")
	}
	return nil
}

func (a *away) Cells(context.Context) ([]table.RegisteredCell, error) { return nil, a.err() }
func (a *away) Vetoes(context.Context) (map[int64]string, error)      { return nil, a.err() }
func (a *away) ForgetVeto(context.Context, int64) error               { return nil }

// TestLogWhileTheRegistryIsAway: a failure that lasts for minutes is logged each
// minute.
func TestLogWhileTheRegistryIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		a := &away{&fleet{}, time.Now().Add(150 * time.Second)}
		logger := slog.New(slog.NewTextHandler(&log, nil))
		c := Cells{Registry: a, Items: a, Log: logger, HoldsLock: func(context.Context) (bool, error) { return true, nil }}
		r := Rollouts{Vetoes: a, Items: a, Log: logger}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_ = c.Run(ctx)
		a.until = time.Now().Add(150 * time.Second)
		ctx, cancel = context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_ = r.Run(ctx)
		if n := strings.Count(log.String(), "level=ERROR"); n != 6 {
			t.Errorf("in two and a half minutes %d errors of two parts are logged\n%s", n, &log)
		}
	})
}
