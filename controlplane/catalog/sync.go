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
	"github.com/limitgate/limitgate/internal/logthrottle"
)

// Scanner reads a whole table.
type Scanner interface {
	Scan(ctx context.Context) ([]table.Item, error)
}

// Updates delivers messages about items that have changed.
type Updates interface {
	// Receive waits for messages. Bad is the number of messages that it could not
	// parse.
	Receive(ctx context.Context) (messages []table.Message, bad int, err error)
}

// Renewer is implemented by Updates that can be set up anew.
type Renewer interface {
	// Renew makes the next Receive create the queue and its subscription anew.
	Renew(ctx context.Context)
}

const (
	// pauseLeast is the pause after an error, and pauseMost bounds the pause after many
	// in a row.
	pauseLeast = 100 * time.Millisecond
	pauseMost  = 5 * time.Second
	// snapshotEvery is the least time between two snapshots of a changed catalog.
	snapshotEvery = 5 * time.Second
	// renewEvery is how often updates are set up anew while no digest arrives.
	renewEvery = 5 * time.Minute
	// saveComplaint is the least time between two log lines about a snapshot that
	// cannot be written.
	saveComplaint = 10 * time.Minute
	// failureEvery is the least time between two log lines about continuing failures of
	// AWS.
	failureEvery = time.Minute
	// lookEvery is how often a Syncer checks whether to read the table.
	lookEvery = time.Second
)

// Syncer keeps a catalog up to date with a table. Run does the work.
type Syncer struct {
	catalog  *Catalog
	table    Scanner
	updates  Updates
	snapshot string // the path, or ""
	log      *slog.Logger
	delay    func(time.Duration) // called with the age of new items
	wake     chan struct{}       // of size 1: the table may be due

	scanning sync.Mutex // guards begun and result; held while the table is read
	begun    time.Time  // when the latest reading began
	result   error      // of the latest reading

	complaints logthrottle.Throttle // of failures to write the snapshot, since it was last written
	failures   logthrottle.Throttle // of failures to sync

	mu      sync.Mutex // guards the fields below
	reread  rereading
	fresh   time.Time // when the latest new item arrived
	failed  error     // the error of the last exchange with AWS
	bad     int64     // messages that could not be parsed
	repairs int64     // readings of the table after the start
	renewed time.Time // when updates were set up anew
	kept    time.Time // when the snapshot in use was written
	saved   string    // the version in the snapshot
}

// NewSyncer returns a Syncer, whose snapshot path may be empty. Delay, unless nil, is
// called with the age of every new item that came into use.
func NewSyncer(c *Catalog, t Scanner, u Updates, snapshot string, delay func(time.Duration)) *Syncer {
	if delay == nil {
		delay = func(time.Duration) {}
	}
	return &Syncer{
		catalog: c, table: t, updates: u, snapshot: snapshot, log: c.opts.Log, delay: delay,
		wake: make(chan struct{}, 1), reread: newRereading(c.opts.Now()),
		complaints: logthrottle.Throttle{Period: saveComplaint, Now: c.opts.Now}, failures: logthrottle.Throttle{Period: failureEvery, Now: c.opts.Now},
	}
}

// Start loads the catalog from the table or, if that fails, from the snapshot. It fails
// when neither has limits.
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
	f.log.Warn("failed to read limits, using snapshot", "error", err, "snapshot", f.snapshot, "written", f.kept)
	return nil
}

// warnOfAnother warns of a snapshot of another table before it is replaced.
func (f *Syncer) warnOfAnother() {
	if f.snapshot == "" {
		return
	}
	if _, err := ReadSnapshot(f.snapshot, f.catalog.opts.Name); errors.Is(err, ErrOtherTable) {
		f.log.Warn("replacing snapshot of another table: does another proxy use the same file?", "error", err)
	}
}

// recall uses the snapshot's versions of items whose present versions cannot be used.
func (f *Syncer) recall() {
	if f.snapshot == "" || f.catalog.Status().Error == "" {
		return
	}
	items, err := ReadSnapshot(f.snapshot, f.catalog.opts.Name)
	if err != nil {
		f.log.Warn("failed to read last good versions of rejected items", "error", err)
		return
	}
	f.catalog.Recall(items)
}

// Run receives updates, and reads the table when it is due, until ctx ends.
func (f *Syncer) Run(ctx context.Context) error {
	var others sync.WaitGroup
	defer others.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop() // also after a panic: otherwise Wait would not return
	others.Go(func() { f.keepSaving(ctx) })
	others.Go(func() { f.keepReading(ctx) })
	f.receive(ctx)
	others.Wait() // keepSaving may still write older limits
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

// renew sets updates up anew while no digest arrives: the subscription may have been
// deleted.
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

// due reports whether to read the table now, and logs the beginning of a silence.
func (f *Syncer) due() bool {
	now, missing := f.catalog.opts.Now(), f.catalog.RereadAt()
	f.mu.Lock()
	defer f.mu.Unlock()
	begins := f.reread.recordSilence(now)
	if begins {
		f.log.Error("no digest received, reading the table instead", "since", f.reread.heard, "advice", "check that a control plane runs, and that it publishes to the topic of --updates")
	}
	return f.reread.due(now, missing)
}

// jitter returns a random pause from half of it to three halves, so that proxies do not
// read the table at the same time.
func jitter(pause time.Duration) time.Duration { return pause/2 + rand.N(pause) }

// ingest processes received messages.
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
	if len(items) > 0 || digest != nil && digest.Digest.Count > 0 {
		f.reread.refill(now)
	}
	if digest != nil {
		if f.reread.silent {
			f.log.Info("receiving digests again")
		}
		if f.reread.recordDigest(now, same, time.Duration(digest.Every)*time.Second, now.Sub(f.fresh) < settleTime) {
			f.log.Error("digest differs from the table just read: received digests of another table, or forged ones", "next_read", f.reread.notBefore)
		}
	}
	f.wakeUp()
}

// wakeUp makes keepReading check whether the table is due. It never blocks.
func (f *Syncer) wakeUp() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

// age reports the age of new items that are in use, 0 if the clock of the writer is
// ahead.
func (f *Syncer) age(fresh []table.Item) {
	for i := range fresh {
		if f.catalog.uses(&fresh[i]) {
			f.delay(max(0, f.catalog.opts.Now().Sub(fresh[i].At)))
		}
	}
}

// Refresh reads the whole table. Any number of goroutines may call it: one reading
// serves all callers that waited for it.
func (f *Syncer) Refresh(ctx context.Context) error {
	asked := f.catalog.opts.Now()
	f.scanning.Lock()
	defer f.scanning.Unlock()
	if f.begun.After(asked) {
		return f.result // the reading began after this call
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

// missedItems logs the items that were new in a reading of the table, and reports their
// age.
func (f *Syncer) missedItems(fresh []table.Item) {
	if len(fresh) == 0 {
		return
	}
	used := 0
	for i := range fresh {
		if f.catalog.uses(&fresh[i]) {
			used++
		}
	}
	if used > 0 {
		f.log.Warn("applying items of the table that differ from the limits in use", "items", used)
	}
	confirmed := f.Status().Confirmed
	if confirmed.IsZero() {
		return // the items are older than this process
	}
	f.age(slices.DeleteFunc(fresh, func(it table.Item) bool { return it.At.Before(confirmed) })) // the other items were restored
}

// confirm records that the table was read, and whether that changed the catalog.
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

// logFailure logs a failure, at most once in failureEvery, and not if ctx has ended.
func (f *Syncer) logFailure(ctx context.Context, err error) {
	if ctx.Err() == nil && f.failures.Allow() {
		f.log.Error("failed to sync limits with the table, they may be stale, retrying", "error", err)
	}
}
