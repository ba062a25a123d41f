// Package controlplane carries changes of a table of limits to all proxies. It promises
// that every change is told at least once, those of one item in their order, and that
// proxies can find out when they have missed one.
package controlplane

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
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

	handled map[handledRecord]bool // since Done was called last: of what Next returns now
}

// handledRecord names a record.
type handledRecord struct{ key, sequence string }

// Run tells of changes until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	var failed failures
	for ctx.Err() == nil {
		if err := r.relay(ctx); err != nil && ctx.Err() == nil {
			if n := failed.due(err); n > 0 {
				r.Log.Error("changes could not be told, and will be", "error", err, "failures", n)
			}
			wait(ctx, retryPause)
		}
	}
	return nil
}

// relay handles the next changes. Next returns them again after an error, and those that were
// handled before it are left out then.
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

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
