package catalog

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
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

// Renewer is implemented by Updates that can be set up anew.
type Renewer interface {
	// Renew has the next Receive set up what delivers messages, a queue and its subscription.
	Renew(ctx context.Context)
}

const (
	// pauseLeast is the pause after an error, and pauseMost bounds it after many in a row.
	pauseLeast = 100 * time.Millisecond
	pauseMost  = 5 * time.Second
	// snapshotEvery is how often a changed catalog is written to disk at the most.
	snapshotEvery = 5 * time.Second
	// renewEvery is how often updates are set up anew while no digest comes.
	renewEvery = 5 * time.Minute
	// saveComplaint is the least time between two log lines about a snapshot that cannot be
	// written.
	saveComplaint = 10 * time.Minute
	// failureEvery is the least time between two log lines about failures of AWS that go on.
	failureEvery = time.Minute
	// lookEvery is how often a follower looks whether the table is to be read.
	lookEvery = time.Second
)

// Syncer keeps a catalog up to date with a table. Run does the work.
type Syncer struct {
	catalog  *Catalog
	table    Scanner
	updates  Updates
	snapshot string // the path, or ""
	log      *slog.Logger
	delay    func(time.Duration) // is called with the age of new items
	wake     chan struct{}       // of size 1: the table may be due

	scanning sync.Mutex // guards begun and result; while it is held the table is read
	begun    time.Time  // when the latest reading of it began
	result   error      // of that

	complained time.Time // about the snapshot; Start uses it, and then keepSaving, and then Run

	mu      sync.Mutex // guards the fields below
	reread  rereading
	fresh   time.Time // when the latest new item came
	failed  error     // of the last exchange with AWS
	logged  time.Time // when such a failure was logged
	bad     int64     // messages that could not be read
	repairs int64     // readings of the table after the start
	renewed time.Time // when updates were set up anew
	kept    time.Time // when the snapshot was written that is used
	saved   string    // the version that the snapshot has
}

// NewSyncer returns a follower, whose snapshot path may be empty. Delay, unless nil, is
// called with the age of every new item that came into use.
func NewSyncer(c *Catalog, t Scanner, u Updates, snapshot string, delay func(time.Duration)) *Syncer {
	if delay == nil {
		delay = func(time.Duration) {}
	}
	return &Syncer{
		catalog: c, table: t, updates: u, snapshot: snapshot, log: c.opts.Log, delay: delay,
		wake: make(chan struct{}, 1), reread: newRereading(c.opts.Now()),
	}
}

// Start loads the catalog: from the table or, where that does not answer, from the
// snapshot. It fails when neither has limits.
func (f *Syncer) Start(ctx context.Context) error {
	items, err := f.table.Scan(ctx)
	if err == nil {
		if err = f.catalog.Load(items); err == nil {
			f.recall()
			f.confirm(true)
			f.warnOfAnother()
			f.save()
			return nil
		}
	}
	f.fail(err)
	if f.snapshot == "" {
		return err
	}
	items, cold := ReadSnapshot(f.snapshot, f.catalog.opts.Name)
	if cold != nil {
		return errors.Join(err, cold)
	}
	if cold := f.catalog.LoadSnapshot(items); cold != nil {
		return errors.Join(err, cold)
	}
	if info, err := os.Stat(f.snapshot); err == nil {
		f.kept = info.ModTime()
	}
	f.log.Warn("the limits could not be read, so those of the snapshot are used", "error", err, "snapshot", f.snapshot, "written", f.kept)
	return nil
}

// warnOfAnother warns of a snapshot of another table before it is replaced.
func (f *Syncer) warnOfAnother() {
	if f.snapshot == "" {
		return
	}
	if _, err := ReadSnapshot(f.snapshot, f.catalog.opts.Name); errors.Is(err, ErrOtherTable) {
		f.log.Warn("a snapshot of another table is replaced: does another proxy use the same file?", "error", err)
	}
}

// recall uses what the snapshot has of items that cannot be used as they are now.
func (f *Syncer) recall() {
	if f.snapshot == "" || f.catalog.Status().Error == "" {
		return
	}
	items, err := ReadSnapshot(f.snapshot, f.catalog.opts.Name)
	if err != nil {
		f.log.Warn("the last good versions of some limits are not known", "error", err)
		return
	}
	f.catalog.Recall(items)
}

// Run receives updates, and reads the table when it is due, until ctx ends.
func (f *Syncer) Run(ctx context.Context) error {
	var others sync.WaitGroup
	defer others.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // also when this panics, or Wait would not return
	others.Go(func() { f.keepSaving(ctx) })
	others.Go(func() { f.keepReading(ctx) })
	f.receive(ctx)
	others.Wait() // keepSaving may write older limits
	f.save()
	return nil
}

// receive receives updates until ctx ends.
func (f *Syncer) receive(ctx context.Context) {
	pause := pauseLeast
	for ctx.Err() == nil {
		f.renew(ctx)
		messages, bad, err := f.updates.Receive(ctx)
		f.ingest(messages, bad)
		if err == nil {
			pause = pauseLeast
			continue
		}
		if errors.Is(err, table.ErrMissed) {
			f.recordMiss()
			continue
		}
		f.fail(err)
		f.logFailure(ctx, err)
		select {
		case <-ctx.Done():
		case <-time.After(jitter(pause)):
		}
		pause = min(2*pause, pauseMost)
	}
}

// renew has updates set up anew if no digest comes: the subscription may have been deleted.
func (f *Syncer) renew(ctx context.Context) {
	updates, ok := f.updates.(Renewer)
	if !ok {
		return
	}
	now := f.catalog.opts.Now()
	f.mu.Lock()
	due := f.reread.silent && now.Sub(f.renewed) >= renewEvery
	if due {
		f.renewed = now
	}
	f.mu.Unlock()
	if due {
		updates.Renew(ctx)
	}
}

// keepReading reads the table when it is due, until ctx ends.
func (f *Syncer) keepReading(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-f.wake:
		case <-tick.C:
		}
		if f.due() {
			_ = f.Refresh(ctx) // the status has the error
		}
	}
}

// due reports whether the table is to be read now, and logs the beginning of a silence.
func (f *Syncer) due() bool {
	now, missing := f.catalog.opts.Now(), f.catalog.RereadAt()
	f.mu.Lock()
	defer f.mu.Unlock()
	begins := f.reread.recordSilence(now)
	if begins {
		f.log.Error("no digest of the limits comes, and the table is read instead", "since", f.reread.heard)
	}
	return f.reread.due(now, missing)
}

// jitter keeps proxies from asking all at once.
func jitter(pause time.Duration) time.Duration { return pause/2 + rand.N(pause) }

// ingest takes received messages.
func (f *Syncer) ingest(messages []table.Message, bad int) {
	var items []table.Item
	var digest *table.Message
	missed := false
	for i := range messages {
		m := &messages[i]
		missed = missed || m.Reread
		if m.Item != nil {
			items = append(items, *m.Item)
		}
		if m.Digest != nil {
			digest = m
		}
	}
	fresh := f.catalog.Apply(items)
	f.age(fresh)
	same := digest != nil && f.catalog.Agree(*digest.Digest)
	now := f.catalog.opts.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bad += int64(bad)
	f.reread.missed = f.reread.missed || missed
	if len(fresh) > 0 {
		f.fresh = now
	}
	if same {
		f.failed = nil
	}
	if digest != nil {
		if f.reread.silent {
			f.log.Info("digests of the limits come again")
		}
		if f.reread.recordDigest(now, same, time.Duration(digest.Every)*time.Second, now.Sub(f.fresh) < settleTime) {
			f.log.Error("the digest still differs from the table that was read: another table's digests come, or forged ones", "next read", f.reread.notBefore)
		}
	}
	f.wakeUp()
}

// wakeUp has keepReading look. It never blocks.
func (f *Syncer) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// age passes on the age of new items that are in use, 0 where the clock of the writer is ahead.
func (f *Syncer) age(fresh []table.Item) {
	for i := range fresh {
		if f.catalog.uses(&fresh[i]) {
			f.delay(max(0, f.catalog.opts.Now().Sub(fresh[i].At)))
		}
	}
}

// Refresh reads the whole table. Any number of goroutines may call it: of those that wait for
// each other one reads for all.
func (f *Syncer) Refresh(ctx context.Context) error {
	asked := f.catalog.opts.Now()
	f.scanning.Lock()
	defer f.scanning.Unlock()
	if f.begun.After(asked) {
		return f.result // of one that began after this was asked for
	}
	f.begun = f.catalog.opts.Now()
	f.mu.Lock()
	f.reread.begin()
	f.mu.Unlock()
	changed, err := f.readAll(ctx)
	f.result = err
	if err != nil {
		f.fail(err)
		f.logFailure(ctx, err)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reread.fail(f.catalog.opts.Now(), errors.Is(err, ErrEmpty))
		return err
	}
	f.mu.Lock()
	f.repairs++
	f.mu.Unlock()
	f.confirm(changed)
	return nil
}

// readAll reads the whole table, and reports whether that changed the catalog.
func (f *Syncer) readAll(ctx context.Context) (changed bool, err error) {
	mark := f.catalog.BeginReading()
	defer f.catalog.EndReading()
	items, err := f.table.Scan(ctx)
	if err != nil {
		return false, err
	}
	before := f.catalog.Reverted()
	fresh, removed, err := f.catalog.ApplyAll(items, mark)
	f.missedItems(fresh)
	if f.catalog.Reverted() > before {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.reread.distrust(f.catalog.opts.Now())
	}
	return len(fresh)+removed > 0, err
}

// missedItems notes the items that a reading of the table brought.
func (f *Syncer) missedItems(fresh []table.Item) {
	if len(fresh) == 0 {
		return
	}
	f.log.Warn("items of the table differ from the limits in use, and are used", "items", len(fresh))
	confirmed := f.Status().Confirmed
	if confirmed.IsZero() {
		return // this process was not there
	}
	f.age(slices.DeleteFunc(fresh, func(it table.Item) bool { return it.At.Before(confirmed) })) // those were put back
}

// confirm notes that the table was read, and whether that changed the catalog.
func (f *Syncer) confirm(changed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread.succeed(f.catalog.opts.Now(), changed)
	f.failed = nil
}

func (f *Syncer) recordMiss() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reread.missed = true
	f.wakeUp()
}

func (f *Syncer) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failed = err
}

// logFailure logs a failure, unless one was logged a moment ago or ctx is the reason.
func (f *Syncer) logFailure(ctx context.Context, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := f.catalog.opts.Now(); ctx.Err() == nil && now.Sub(f.logged) >= failureEvery {
		f.logged = now
		f.log.Error("the limits may be stale: the table is not followed, and will be", "error", err)
	}
}

// keepSaving writes a snapshot now and then, while there is something new.
func (f *Syncer) keepSaving(ctx context.Context) {
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

func (f *Syncer) save() {
	if f.snapshot == "" {
		return
	}
	saved := f.catalog.Status().Version
	if err := WriteSnapshot(f.snapshot, f.catalog.opts.Name, f.catalog.Items()); err != nil {
		if now := f.catalog.opts.Now(); now.Sub(f.complained) >= saveComplaint {
			f.complained = now
			f.log.Error("the limits could not be kept for the next start", "error", err)
		}
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.saved, f.complained = saved, time.Time{}
}

// lastSaved returns the version of the catalog when it was saved.
func (f *Syncer) lastSaved() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.saved
}

// SyncStatus describes a follower.
type SyncStatus struct {
	Confirmed time.Time // when the catalog was known to be the table's state, zero for never
	Kept      time.Time // when the snapshot was written that is used instead
	Error     string    // of the last exchange, or why the catalog may be stale, or ""
	Bad       int64     // messages that could not be read
	Repairs   int64     // readings of the table after the start
}

// Status describes the follower. Any number of goroutines may call it.
func (f *Syncer) Status() SyncStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := SyncStatus{Confirmed: f.reread.confirmed, Kept: f.kept, Bad: f.bad, Repairs: f.repairs}
	switch {
	case f.failed != nil:
		st.Error = f.failed.Error()
	case f.reread.distrusts(f.catalog.opts.Now()):
		st.Error = "messages name limits that the table does not have, and the table takes them back: is this proxy's queue written to by others?"
	case f.reread.silent:
		st.Error = "no digest of the limits has come since " + f.reread.heard.UTC().Format(time.RFC3339) + ": is a control plane running, and its topic subscribed? The table is read about every 40 s instead"
	}
	return st
}
