// Package controlplane sends changes of a table of limits to all proxies. It promises
// that every change is sent at least once, the changes of one item in their order, and
// that proxies can detect that they missed one.
package controlplane

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/run"
)

// Stream reads the changes of a table.
type Stream interface {
	// Next waits a moment for changes, and returns those that it finds. It returns them
	// again unless Done is called.
	Next(ctx context.Context) ([]table.Record, error)
	// Done records that the changes returned by Next were processed.
	Done(ctx context.Context) error
}

// retryPause is the pause after an error.
const retryPause = time.Second

// Relay passes the changes of a stream to a handler.
type Relay struct {
	Stream  Stream
	Handler *Handler
	Log     *slog.Logger

	handled map[handledRecord]bool // records of the present Next that were processed, until Done
}

// handledRecord identifies a record.
type handledRecord struct{ key, sequence string }

// Run relays changes until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	var failed failures
	for ctx.Err() == nil {
		if err := r.relay(ctx); err != nil && ctx.Err() == nil {
			if n := failed.due(err); n > 0 {
				r.Log.Error("failed to relay changes, retrying", "error", err, "failures", n)
			}
			run.Sleep(ctx, retryPause)
		}
	}
	return nil
}

// relay handles the next changes. After an error Next returns them again, and relay
// skips those that were handled before the error.
func (r *Relay) relay(ctx context.Context) error {
	records, err := r.Stream.Next(ctx)
	if err != nil || len(records) == 0 {
		return err
	}
	records = slices.DeleteFunc(records, func(record table.Record) bool {
		return r.handled[handledRecord{record.Key(), record.Sequence}]
	})
	done, err := r.Handler.Handle(ctx, records)
	if err != nil {
		if r.handled == nil {
			r.handled = map[handledRecord]bool{}
		}
		for i := range records[:done] {
			r.handled[handledRecord{records[i].Key(), records[i].Sequence}] = true
		}
		return err
	}
	r.handled = nil
	return r.Stream.Done(ctx)
}
