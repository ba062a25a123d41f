// Package controlplane carries changes of a table of limits to all proxies. It promises
// that every change is told at least once, those of one item in their order, and that
// proxies can find out when they have missed one.
package controlplane

import (
	"context"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/table"
)

// Stream tells of the changes of a table.
type Stream interface {
	// Next waits for changes, a moment, and returns those that there are. They are told
	// again unless Done is called.
	Next(ctx context.Context) ([]table.Record, error)
	// Done notes that what Next returned was told on.
	Done(ctx context.Context) error
}

// retryPause is how long nothing is tried after an error.
const retryPause = time.Second

// Relay tells proxies of changes.
type Relay struct {
	Stream  Stream
	Handler *Handler
	Log     *slog.Logger
}

// Run tells of changes until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.relay(ctx); err != nil && ctx.Err() == nil {
			r.Log.Error("changes could not be told, and will be", "error", err)
			wait(ctx, retryPause)
		}
	}
	return nil
}

// relay handles the next changes.
func (r *Relay) relay(ctx context.Context) error {
	records, err := r.Stream.Next(ctx)
	if err != nil || len(records) == 0 {
		return err
	}
	if _, err := r.Handler.Handle(ctx, records); err != nil {
		return err
	}
	return r.Stream.Done(ctx)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
