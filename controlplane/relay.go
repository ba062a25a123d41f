// Package controlplane carries changes of a table of limits to all proxies. It promises
// that every change is told at least once, those of one item in their order, and that
// proxies can find out when they have missed one.
package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/table"
)

// Stream tells of the changes of a table.
type Stream interface {
	// Next waits for changes, a moment, and returns those that there are. They are told
	// again unless Done is called.
	Next(ctx context.Context) ([]table.Item, error)
	// Done notes that what Next returned was told on.
	Done(ctx context.Context) error
}

// Publisher tells all proxies.
type Publisher interface {
	Publish(ctx context.Context, messages []table.Message) error
}

// Scanner reads a whole table.
type Scanner interface {
	Scan(ctx context.Context) ([]table.Item, error)
}

const (
	// digestEvery is how often proxies are told what the whole table is.
	digestEvery = 10 * time.Second
	// retryPause is how long nothing is tried after an error.
	retryPause = time.Second
)

// Relay tells proxies of changes.
type Relay struct {
	Table   Scanner
	Stream  Stream
	Publish Publisher
	Log     *slog.Logger
}

// Run tells of changes until ctx ends.
func (r *Relay) Run(ctx context.Context) error {
	sum := map[string]table.Item{}
	items, err := r.Table.Scan(ctx)
	if err != nil {
		return fmt.Errorf("read table: %w", err)
	}
	for _, it := range items {
		sum[it.Key] = it
	}
	told := time.Time{}
	for ctx.Err() == nil {
		err := r.relay(ctx, sum)
		if err == nil && time.Since(told) >= digestEvery {
			now := time.Now()
			if err = r.Publish.Publish(ctx, []table.Message{{Digest: digestOf(sum), At: now.UTC()}}); err == nil {
				told = now
			}
		}
		if err != nil && ctx.Err() == nil {
			r.Log.Error("changes could not be told, and will be", "error", err)
			wait(ctx, retryPause)
		}
	}
	return nil
}

// relay tells of the next changes, and notes them in known.
func (r *Relay) relay(ctx context.Context, known map[string]table.Item) error {
	items, err := r.Stream.Next(ctx)
	if err != nil || len(items) == 0 {
		return err
	}
	messages := make([]table.Message, len(items))
	now := time.Now().UTC()
	for i := range items {
		messages[i] = table.Message{Item: &items[i], At: now}
		if items[i].Version > known[items[i].Key].Version {
			known[items[i].Key] = items[i]
		}
	}
	if err := r.Publish.Publish(ctx, messages); err != nil {
		return err
	}
	return r.Stream.Done(ctx)
}

func digestOf(items map[string]table.Item) *table.Digest {
	var d table.Digest
	for _, it := range items {
		if it.IsLimits() {
			d.Add(&it)
		}
	}
	return &d
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
