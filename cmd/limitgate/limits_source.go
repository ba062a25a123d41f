package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/limit"
)

// limitsSource supplies the limits.
type limitsSource interface {
	Set() *limit.Set
	OnChange(apply func(*limit.Set))
	Reload() error
	Status() config.LimitsStatus
	// Threshold is the share of all requests, 0 to 1, that canary limits may deny beyond
	// the denials of the current limits.
	Threshold() float64
	// TakeBack ends the canary of limits of a version, or of any if version is empty.
	TakeBack(version, why string) error
	// Promote applies canary limits to all tenants.
	Promote() error
}

// awsTimeout bounds calls of AWS at start, at shutdown and on behalf of people.
const awsTimeout = 30 * time.Second

// snapshotAfter is how long a start waits for AWS if there may be a snapshot. The proxy
// follows the table afterwards and soon has the rest.
const snapshotAfter = 10 * time.Second

// tableSource supplies the limits of a DynamoDB table.
type tableSource struct {
	*catalog.Catalog
	name        string
	cell        *cell // nil outside cells
	rolloutGate *rolloutGate
	follower    *catalog.Syncer
	lookup      *catalog.TenantFetcher
	close       func(context.Context) error // closes the subscription to changes
	log         *slog.Logger
	started     atomic.Bool // set once decisions are made
}

// compilePause is how long a compilation repeatedly pauses while decisions are made. The
// decisions then get a processor within tenths of a millisecond, instead of waiting for
// the system or Go's scheduler to preempt the compilation.
const compilePause = time.Millisecond

// compileOptions returns the options of the settings that limits are checked against.
func compileOptions(s *config.Settings) limit.CompileOptions {
	return limit.CompileOptions{IPMaxTTL: s.PrivacyIPMaxTTL.Microseconds(), IPSecret: s.PrivacyIPSecretFile != ""}
}

// compile compiles parts of a table, or all of them, as the cell of the settings enforces
// them, with the canary revision of the gate.
func (t *tableSource) compile(s *config.Settings, parts map[string]json.RawMessage, all bool) (*limit.Set, error) {
	opts := compileOptions(s)
	if t.started.Load() {
		opts.Pause = func() { time.Sleep(compilePause) }
	}
	var err error
	if opts.Cells, err = config.CellsOf(parts, s.Cell, int64(s.CellWeight)); err != nil {
		return nil, err
	}
	set, _, err := config.CompileParts(s.Limits, parts, opts)
	if err != nil {
		return nil, err
	}
	return t.rolloutGate.try(set, all, func(g table.Gate) (*limit.Set, error) { return config.TryRevision(s.Limits, parts, set, g, opts) }), nil
}

// openTable subscribes to the changes of a table and then loads it, so that it misses no
// change between the two.
func openTable(ctx context.Context, s *config.Settings, log *slog.Logger, delay func(time.Duration)) (*tableSource, error) {
	if (s.UpdatesTopic == "") == (s.UpdatesQueue == "") {
		return nil, errors.New("limits of a table need a subscription to changes: set --updates-topic ARN, or --updates-queue URL of a queue made for this proxy alone")
	}
	wait := awsTimeout
	if s.LimitsSnapshot != "" {
		wait = snapshotAfter
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	aws, err := awsclient.Load(ctx)
	if err != nil {
		return nil, err
	}
	t := &tableSource{name: s.Limits, log: log}
	if t.rolloutGate, err = openRolloutGate(ctx, aws, s, t, log); err != nil {
		return nil, err
	}
	t.Catalog = catalog.New(catalog.Options{Name: s.Limits, Log: log, Compile: func(parts map[string]json.RawMessage, all bool) (*limit.Set, error) { return t.compile(s, parts, all) }})
	t.cell = newCell(s, dynamo.NewRegistry(aws, s.CellsTable), log)
	var updates catalog.Updates
	if s.UpdatesQueue != "" {
		queue := dynamo.OpenQueue(aws, s.UpdatesQueue)
		updates, t.close = queue, queue.Close
	} else {
		topic := dynamo.NewSubscription(aws, s.UpdatesTopic)
		opening, cancel := context.WithTimeout(ctx, wait/2) // the rest is for loading the table
		defer cancel()
		if err := topic.Open(opening); err != nil {
			log.Warn("failed to subscribe to changes of the limits, retrying", "error", err)
		}
		updates, t.close = topic, topic.Close
	}
	limits := dynamo.NewTable(aws, s.LimitsTable())
	t.lookup = catalog.NewTenantFetcher(t.Catalog, limits)
	t.follower = catalog.NewSyncer(t.Catalog, limits, updates, s.LimitsSnapshot, delay)
	if err := t.follower.Start(ctx); err != nil {
		t.end()
		return nil, err
	}
	return t, nil
}

// end ends the subscription.
func (t *tableSource) end() {
	ctx, cancel := context.WithTimeout(context.Background(), awsTimeout)
	defer cancel()
	if err := t.close(ctx); err != nil {
		t.log.Warn("failed to delete the update queue of this proxy", "error", err)
	}
}

// Reload reads the whole table again, and retries a revision that failed to compile.
func (t *tableSource) Reload() error {
	ctx, cancel := context.WithTimeout(context.Background(), awsTimeout)
	defer cancel()
	again := t.rolloutGate.clearBroken()
	if err := t.follower.Refresh(ctx); err != nil || !again {
		return err
	}
	return t.Recompile()
}

// Status describes the limits in use.
func (t *tableSource) Status() config.LimitsStatus {
	c, f := t.Catalog.Status(), t.follower.Status()
	st := config.LimitsStatus{Version: c.Version, Source: t.name, Loaded: f.Confirmed, Error: c.Error, Rejected: c.Rejections + f.Bad, OutOfOrder: c.Stale, Repairs: f.Repairs}
	if st.Loaded.IsZero() {
		st.Loaded = f.Kept
	}
	var failed string
	st.Trial, failed = t.rolloutGate.describe(t.Set())
	st.Error = cmp.Or(st.Error, failed, f.Error)
	return st
}

// run follows the table until ctx ends. SIGHUP makes it read the table again.
func (t *tableSource) run(ctx context.Context) error {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	defer t.end()
	t.started.Store(true)
	parts := []func(context.Context) error{t.follower.Run, t.lookup.Run}
	if t.cell != nil {
		parts = append(parts, t.cell.run)
	}
	if t.rolloutGate.poller != nil {
		parts = append(parts, t.rolloutGate.poller.Run, t.rolloutGate.run)
	}
	return runAll(ctx, append(parts, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-hup:
				if err := t.Reload(); err != nil {
					t.log.Error("failed to read the limits again", "error", err)
				}
			}
		}
	})...)
}
