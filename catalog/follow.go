package catalog

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/limitgate/limitgate/table"
)

// Scanner reads a whole table.
type Scanner interface {
	Scan(ctx context.Context) ([]table.Item, error)
}

// Updates tell of items that have changed.
type Updates interface {
	// Receive waits for messages, and returns how many others it could not read.
	Receive(ctx context.Context) (messages []table.Message, bad int, err error)
}

const (
	// pauseMost bounds the pause after an error.
	pauseMost = 5 * time.Second
	// snapshotEvery is how often a changed catalog is written to disk at the most.
	snapshotEvery = 5 * time.Second
	// repairPause is how long after a digest that differs the table is read again, if the
	// next one differs, too: what was missing may just have been on its way.
	repairPause = 2
)

// Follower keeps a catalog up to date with a table. Run does the work.
type Follower struct {
	catalog  *Catalog
	table    Scanner
	updates  Updates
	snapshot string // the path, or ""
	log      *slog.Logger

	mu        sync.Mutex // guards what follows
	confirmed time.Time  // when the catalog was known to be the table's state
	missed    bool       // whether nobody was told of changes for a while
	differing int        // digests in a row that differed
	failed    error      // of the last exchange with AWS
	bad       int64      // messages that could not be read
	repairs   int64      // scans because of digests
	delay     func(time.Duration)
}

// NewFollower returns a follower, whose snapshot path may be empty. Delay, unless nil, is
// told of every new item how long ago it was written.
func NewFollower(c *Catalog, t Scanner, u Updates, snapshot string, delay func(time.Duration)) *Follower {
	if delay == nil {
		delay = func(time.Duration) {}
	}
	return &Follower{catalog: c, table: t, updates: u, snapshot: snapshot, log: c.opts.Log, delay: delay}
}

// Start loads the catalog: from the table or, where that does not answer, from the
// snapshot. It fails when neither has limits.
func (f *Follower) Start(ctx context.Context) error {
	items, err := f.table.Scan(ctx)
	if err == nil {
		if err = f.catalog.Load(items); err == nil {
			f.confirm()
			f.save()
			return nil
		}
	}
	f.fail(err)
	if f.snapshot == "" {
		return err
	}
	items, cold := ReadSnapshot(f.snapshot)
	if cold != nil {
		return errors.Join(err, cold)
	}
	if cold := f.catalog.Load(items); cold != nil {
		return errors.Join(err, cold)
	}
	f.log.Warn("the limits could not be read, so those of the snapshot are used", "error", err, "snapshot", f.snapshot)
	return nil
}

// Run receives updates until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	var saver sync.WaitGroup
	defer saver.Wait()
	saver.Go(func() { f.keepSaving(ctx) })
	pause := 100 * time.Millisecond
	for ctx.Err() == nil {
		if f.wantsScan() {
			_ = f.Refresh(ctx) // the status tells of it
		}
		messages, bad, err := f.updates.Receive(ctx)
		f.take(messages, bad)
		if err == nil {
			pause = 100 * time.Millisecond
			continue
		}
		if errors.Is(err, table.ErrMissed) {
			f.miss()
			continue
		}
		f.fail(err)
		select {
		case <-ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, pauseMost)
	}
	f.save()
	return nil
}

// take takes what was received.
func (f *Follower) take(messages []table.Message, bad int) {
	var items []table.Item
	var digest *table.Digest
	for _, m := range messages {
		if m.Item != nil {
			items = append(items, *m.Item)
			f.delay(f.catalog.opts.Now().Sub(m.Item.At))
		}
		if m.Digest != nil {
			digest = m.Digest
		}
	}
	f.catalog.Apply(items)
	same := digest != nil && *digest == f.catalog.Digest()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad += int64(bad)
	switch {
	case same:
		f.differing, f.confirmed, f.failed = 0, f.catalog.opts.Now(), nil
	case digest != nil:
		f.differing++
	}
}

// wantsScan reports whether something was missed.
func (f *Follower) wantsScan() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.confirmed.IsZero() || f.missed || f.differing >= repairPause
}

// Refresh reads the whole table. Any number of goroutines may call it.
func (f *Follower) Refresh(ctx context.Context) error {
	items, err := f.table.Scan(ctx)
	if err != nil {
		f.fail(err)
		return err
	}
	if n := f.catalog.Apply(items); n > 0 {
		f.log.Warn("updates of the limits were missed, and read again", "items", n)
	}
	f.mu.Lock()
	f.repairs++
	f.mu.Unlock()
	f.confirm()
	return nil
}

func (f *Follower) confirm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.confirmed, f.missed, f.differing, f.failed = f.catalog.opts.Now(), false, 0, nil
}

func (f *Follower) miss() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.missed = true
}

func (f *Follower) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
}

// keepSaving writes a snapshot now and then, while there is something new.
func (f *Follower) keepSaving(ctx context.Context) {
	tick := time.NewTicker(snapshotEvery)
	defer tick.Stop()
	saved := f.catalog.Digest()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if now := f.catalog.Digest(); now != saved {
				f.save()
				saved = now
			}
		}
	}
}

func (f *Follower) save() {
	if f.snapshot == "" {
		return
	}
	if err := WriteSnapshot(f.snapshot, f.catalog.Items()); err != nil {
		f.log.Error("the limits could not be kept for the next start", "error", err)
	}
}

// FollowStatus describes a follower.
type FollowStatus struct {
	Confirmed time.Time // when the catalog was known to be the table's state, zero for never
	Error     string    // of the last exchange, or ""
	Bad       int64     // messages that could not be read
	Repairs   int64     // scans because something was missed
}

// Status describes the follower. Any number of goroutines may call it.
func (f *Follower) Status() FollowStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := FollowStatus{Confirmed: f.confirmed, Bad: f.bad, Repairs: f.repairs}
	if f.failed != nil {
		st.Error = f.failed.Error()
	}
	return st
}
