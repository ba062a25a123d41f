package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/run"
)

// Scanner reads a whole table.
type Scanner interface {
	Scan(ctx context.Context) ([]table.Item, error)
}

const (
	// DigestEvery is how often a control plane that runs all the time publishes a
	// digest.
	DigestEvery = 10 * time.Second
	// leadEvery is how often it takes or renews the lock for publishing, well within a
	// lease.
	leadEvery = DigestEvery / 4
)

// Digests publishes the digest of a table, each time of a new reading. By the digest
// proxies detect that they missed a change or accepted a forged one; by its absence
// they detect that changes do not reach them. Only one control plane at a time
// publishes digests.
type Digests struct {
	Table   Scanner
	Publish Publisher
	// HoldsLock reports whether this control plane publishes the digests now.
	HoldsLock func(ctx context.Context) (bool, error)
	Log       *slog.Logger
}

// Run publishes digests until ctx ends.
func (d *Digests) Run(ctx context.Context) error {
	var next time.Time
	var failed failures
	for ctx.Err() == nil {
		began := time.Now()
		alone, err := d.HoldsLock(ctx)
		if err == nil && alone && !began.Before(next) {
			next = began.Add(DigestEvery)
			err = d.Update(ctx, DigestEvery)
		}
		if n := failed.due(err); n > 0 && ctx.Err() == nil {
			d.Log.Error("failed to publish digest, retrying", "error", err, "failures", n)
		}
		run.Sleep(ctx, leadEvery-time.Since(began))
	}
	return nil
}

// Update reads the table and publishes its digest. Every is the interval to the next
// digest, in whole seconds; it is longer if the reading takes longer. Proxies wait for
// three digests.
func (d *Digests) Update(ctx context.Context, every time.Duration) error {
	began := time.Now()
	items, err := d.Table.Scan(ctx)
	every = max(every, time.Since(began)+leadEvery)
	if err != nil {
		return fmt.Errorf("publish digest: %w", err)
	}
	digest := DigestOf(items)
	message := table.Message{Digest: &digest, Every: int64(every / time.Second), At: time.Now().UTC()}
	if _, err := d.Publish.Publish(ctx, []table.Message{message}); err != nil {
		return fmt.Errorf("publish digest: %w", err)
	}
	return nil
}

// DigestOf returns the digest of the items of a table.
func DigestOf(items []table.Item) (d table.Digest) {
	for i := range items {
		if items[i].IsLimits() {
			d.Add(&items[i])
		}
	}
	return d
}
