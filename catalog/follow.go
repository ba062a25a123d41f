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
	// pauseLeast is the pause after an error, and pauseMost bounds it after many in a row. The
	// table is asked between the waits for messages, which may take longer.
	pauseLeast = 100 * time.Millisecond
	pauseMost  = 5 * time.Second
	// snapshotEvery is how often a changed catalog is written to disk at the most.
	snapshotEvery = 5 * time.Second
	// scanEvery is how often the table is read because something was missed, at the most.
	scanEvery = 2 * time.Second
	// repairAfter is after how many digests in a row that differ the table is read again:
	// what the first one misses may just have been on its way.
	repairAfter = 2
)

// Follower keeps a catalog up to date with a table. Run does the work.
type Follower struct {
	catalog  *Catalog
	table    Scanner
	updates  Updates
	snapshot string // the path, or ""
	log      *slog.Logger
	delay    func(time.Duration) // told of the age of new items

	scanning sync.Mutex // guards begun, and that one reads the table
	begun    time.Time  // when the latest reading of it began

	mu        sync.Mutex // guards what follows
	confirmed time.Time  // when the catalog was known to be the table's state
	missed    bool       // whether nobody was told of changes for a while
	differing int        // digests in a row that differed
	failed    error      // of the last exchange with AWS
	bad       int64      // messages that could not be read
	repairs   int64      // scans because of digests
	saved     string     // the version that the snapshot has
}

// NewFollower returns a follower, whose snapshot path may be empty. Delay, unless nil, is
// told of every new item that came into use how long ago it was written.
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
			f.recall()
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

// recall uses what the snapshot has of items that cannot be used as they are now.
func (f *Follower) recall() {
	if f.snapshot == "" || f.catalog.Status().Error == "" {
		return
	}
	items, err := ReadSnapshot(f.snapshot)
	if err != nil {
		f.log.Warn("the last good versions of some limits are not known", "error", err)
		return
	}
	f.catalog.Recall(items)
}

// Run receives updates until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	var saver sync.WaitGroup
	defer saver.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // also when this panics, which must not wait for the saver for ever
	saver.Go(func() { f.keepSaving(ctx) })
	pause, scanPause := pauseLeast, pauseLeast
	var scanAt time.Time // not before
	for ctx.Err() == nil {
		if f.wantsScan() && !time.Now().Before(scanAt) {
			if f.Refresh(ctx) == nil { // the status tells of what went wrong
				scanPause = pauseLeast
				scanAt = time.Now().Add(jitter(scanEvery)) // whoever can send messages cannot have more
			} else {
				scanAt = time.Now().Add(jitter(scanPause))
				scanPause = min(2*scanPause, pauseMost)
			}
		}
		messages, bad, err := f.updates.Receive(ctx)
		f.take(messages, bad)
		if err == nil {
			pause = pauseLeast
			continue
		}
		if errors.Is(err, table.ErrMissed) {
			f.miss()
			continue
		}
		f.fail(err)
		select {
		case <-ctx.Done():
		case <-time.After(jitter(pause)):
		}
		pause = min(2*pause, pauseMost)
	}
	saver.Wait() // what it writes is older
	f.save()
	return nil
}

// jitter keeps proxies from asking all at once.
func jitter(pause time.Duration) time.Duration { return pause/2 + rand.N(pause) }

// take takes what was received.
func (f *Follower) take(messages []table.Message, bad int) {
	var items []table.Item
	var digest *table.Digest
	reread := false
	for _, m := range messages {
		reread = reread || m.Reread
		if m.Item != nil {
			items = append(items, *m.Item)
		}
		if m.Digest != nil {
			digest = m.Digest
		}
	}
	f.age(f.catalog.Apply(items))
	same := digest != nil && *digest == f.catalog.Digest()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad += int64(bad)
	f.missed = f.missed || reread
	switch {
	case same:
		f.differing, f.confirmed, f.failed = 0, f.catalog.opts.Now(), nil
	case digest != nil:
		f.differing++
	}
}

// age tells how long ago new items were written, of those that are in use.
func (f *Follower) age(fresh []table.Item) {
	for i := range fresh {
		if f.catalog.uses(&fresh[i]) {
			f.delay(f.catalog.opts.Now().Sub(fresh[i].At))
		}
	}
}

// wantsScan reports whether something was missed.
func (f *Follower) wantsScan() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.confirmed.IsZero() || f.missed || f.differing >= repairAfter
}

// Refresh reads the whole table. Any number of goroutines may call it: of those that wait for
// each other one reads for all.
func (f *Follower) Refresh(ctx context.Context) error {
	asked := f.catalog.opts.Now()
	f.scanning.Lock()
	defer f.scanning.Unlock()
	if f.begun.After(asked) && f.Status().Error == "" {
		return nil // by one that began after this was asked for
	}
	f.begun = f.catalog.opts.Now()
	before := f.catalog.Versions()
	items, err := f.table.Scan(ctx)
	if err != nil {
		f.fail(err)
		return err
	}
	if fresh := f.catalog.ApplyAll(items, before); len(fresh) > 0 {
		f.log.Warn("updates of the limits were missed, and read again", "items", len(fresh))
		if !f.Status().Confirmed.IsZero() { // else this process was not there
			f.age(fresh)
		}
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
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if f.catalog.Status().Version != f.lastSaved() {
				f.save()
			}
		}
	}
}

func (f *Follower) save() {
	if f.snapshot == "" {
		return
	}
	saved := f.catalog.Status().Version
	if err := WriteSnapshot(f.snapshot, f.catalog.Items()); err != nil {
		f.log.Error("the limits could not be kept for the next start", "error", err)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved = saved
}

// lastSaved returns the version of the catalog when it was saved.
func (f *Follower) lastSaved() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saved
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
