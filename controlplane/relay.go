// Package controlplane carries changes of a table of limits to all proxies. It promises
// that every change is told at least once, those of one item in their order, and that
// proxies can find out when they have missed one.
package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
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
	// Whole reports whether all changes are told here, and none elsewhere.
	Whole() bool
}

// Scanner reads a whole table.
type Scanner interface {
	Scan(ctx context.Context) ([]table.Item, error)
}

const (
	// DigestQuiet is how long nothing may have changed for a digest to be told: what is still
	// on its way to proxies would look missed.
	DigestQuiet = 2 * time.Second
	// digestEvery is how often proxies are told what the whole table is when nothing changes.
	// While things change all the time they are told so after digestMost.
	digestEvery = 10 * time.Second
	digestMost  = time.Minute
	// retryPause is how long nothing is tried after an error.
	retryPause = time.Second
)

// Relay tells proxies of changes.
type Relay struct {
	Table   Scanner
	Stream  Stream
	Handler *Handler
	Log     *slog.Logger
}

// Run tells of changes until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	var known map[string]table.Item // nil while changes are told elsewhere, too
	var told, changed time.Time
	for ctx.Err() == nil {
		n, err := r.relay(ctx, known)
		if n > 0 {
			changed = time.Now()
		}
		if !r.Stream.Whole() || err != nil { // after an error the table may be another one
			known = nil
		} else if digestDue(told, changed) {
			if known == nil {
				known, err = r.read(ctx)
			}
			if err == nil {
				err = r.Handler.TellDigest(ctx, DigestOf(slices.Collect(maps.Values(known))))
			}
			if err == nil {
				told = time.Now()
			}
		}
		if err != nil && ctx.Err() == nil {
			r.Log.Error("changes could not be told, and will be", "error", err)
			wait(ctx, retryPause)
		}
	}
	return nil
}

// digestDue reports whether it is time for a digest, when the last one was told at an
// instant and something has changed at another.
func digestDue(told, changed time.Time) bool {
	quiet := time.Since(changed) >= DigestQuiet
	return quiet && time.Since(told) >= digestEvery || time.Since(told) >= digestMost
}

// read reads the whole table. What changes meanwhile is told behind it.
func (r *Relay) read(ctx context.Context) (map[string]table.Item, error) {
	items, err := r.Table.Scan(ctx)
	if err != nil {
		return nil, fmt.Errorf("read table: %w", err)
	}
	known := map[string]table.Item{}
	for _, it := range items {
		known[it.Key] = it
	}
	return known, nil
}

// relay handles the next changes, and notes them in known, if that is there. It returns how
// many there were.
func (r *Relay) relay(ctx context.Context, known map[string]table.Item) (n int, err error) {
	records, err := r.Stream.Next(ctx)
	if err != nil || len(records) == 0 {
		return 0, err
	}
	for i := range records {
		if it := records[i].After; known != nil && records[i].Signed() && it.Version > known[it.Key].Version {
			known[it.Key] = *it
		}
	}
	if _, err := r.Handler.Handle(ctx, records); err != nil {
		return len(records), err
	}
	return len(records), r.Stream.Done(ctx)
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
