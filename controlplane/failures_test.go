package controlplane

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// refused is an AWS that refuses all requests.
type refused struct{}

func (refused) Next(context.Context) ([]table.Record, error) { return nil, errDown }
func (refused) Done(context.Context) error                   { return errDown }

// TestFailuresAreFewLines: while all calls fail at once for an hour, each component of
// a control plane logs one line a minute, the first one at once.
func TestFailuresAreFewLines(t *testing.T) {
	for what, run := range map[string]func(context.Context, *slog.Logger) error{
		"relay": func(ctx context.Context, log *slog.Logger) error {
			return (&Relay{Stream: refused{}, Log: log}).Run(ctx)
		},
		"digests": func(ctx context.Context, log *slog.Logger) error {
			return (&Digests{HoldsLock: func(context.Context) (bool, error) { return false, errDown }, Log: log}).Run(ctx)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var text bytes.Buffer
				ctx, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				_ = run(ctx, slog.New(slog.NewTextHandler(&text, nil)))
				if n := strings.Count(text.String(), "\n"); n < 30 || n > 61 {
					t.Errorf("%d lines in an hour", n)
				}
			})
		})
	}
}
