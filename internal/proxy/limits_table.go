package proxy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/catalog"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/awsclient"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/metrics"
)

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
	changes     *changeLog
	log         *slog.Logger
	reload      <-chan os.Signal
	started     atomic.Bool // set once decisions are made
}

// compilePause is how long a compilation repeatedly pauses while decisions are made. The
// decisions then get a processor within tenths of a millisecond, instead of waiting for
// the system or Go's scheduler to preempt the compilation.
const compilePause = time.Millisecond

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
func openTable(ctx context.Context, s *config.Settings, log *slog.Logger, reload <-chan os.Signal, delay func(time.Duration)) (*tableSource, error) {
	if s.Updates == "" {
		return nil, config.Mistake("limits of a table need a subscription to changes: set --updates to the ARN of a topic, for example arn:aws:sns:eu-central-1:123456789012:limits, or to the URL of a queue made for this proxy alone")
	}
	wait := awsclient.Timeout
	if s.LimitsSnapshot != "" {
		if err := catalog.CheckSnapshotPath(s.LimitsSnapshot); err != nil {
			return nil, err
		}
		wait = snapshotAfter
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	aws, err := awsclient.Load(ctx)
	if err != nil {
		return nil, err
	}
	t := &tableSource{name: s.Limits, log: log, reload: reload}
	if t.rolloutGate, err = openRolloutGate(ctx, aws, s, t, log); err != nil {
		return nil, err
	}
	t.Catalog = catalog.New(catalog.Options{Name: s.Limits, Log: log, Compile: func(parts map[string]json.RawMessage, all bool) (*limit.Set, error) { return t.compile(s, parts, all) }})
	t.cell = newCell(s, dynamo.NewRegistry(aws, s.CellsTable), log)
	var updates catalog.Updates
	if dynamo.IsQueue(s.Updates) {
		queue := dynamo.OpenQueue(aws, s.Updates)
		updates, t.close = queue, queue.Close
	} else {
		topic := dynamo.NewSubscription(aws, s.Updates)
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
		t.Close()
		if s.LimitsSnapshot == "" && awsclient.IsCall(err) {
			err = fmt.Errorf("%w; without AWS a start needs --limits-snapshot FILE, which an earlier start wrote", err)
		}
		return nil, err
	}
	t.changes = newChangeLog(t.name, t.Set(), log)
	return t, nil
}

// OnChange makes later changes pass the limits to apply, and logs them.
func (t *tableSource) OnChange(apply func(*limit.Set)) {
	t.Catalog.OnChange(func(set *limit.Set) {
		apply(set)
		t.changes.use(set)
	})
}

// LogsChanges returns true.
func (t *tableSource) LogsChanges() bool { return true }

// Close ends the subscription.
func (t *tableSource) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), awsclient.Timeout)
	defer cancel()
	if err := t.close(ctx); err != nil {
		t.log.Warn("failed to delete the update queue of this proxy", "error", err)
	}
}

// Reload reads the whole table again, and retries a revision that failed to compile. Items that cannot be
// used are an error.
func (t *tableSource) Reload() error {
	ctx, cancel := context.WithTimeout(context.Background(), awsclient.Timeout)
	defer cancel()
	again := t.rolloutGate.clearBroken()
	if err := t.follower.Refresh(ctx); err != nil {
		return errors.New(awsclient.Explain(err))
	}
	if again {
		if err := t.Recompile(); err != nil {
			return err
		}
	}
	if bad := t.Catalog.Status().Error; bad != "" {
		return fmt.Errorf("items of the table cannot be used, and the last good version of each stays in use, if it has one: %s; push them corrected", bad)
	}
	return t.rolloutGate.failure()
}

// Status describes the limits in use.
func (t *tableSource) Status() config.LimitsStatus {
	c, f := t.Catalog.Status(), t.follower.Status()
	st := config.LimitsStatus{Version: c.Version, Source: t.name, Loaded: f.Confirmed, Rejected: c.Rejections + f.Bad, OutOfOrder: c.Stale, Repairs: f.Repairs}
	if st.Loaded.IsZero() {
		st.Loaded = f.Kept
	}
	var away, failed string
	if f.Err != nil {
		away = awsclient.Explain(f.Err) // first: without AWS no item is corrected
	}
	st.Trial, failed = t.rolloutGate.describe(t.Set())
	st.Error = joined(away, c.Error, failed)
	return st
}

// joined returns the texts that are not empty, in one line.
func joined(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "; ")
}

// Cell returns the cell of this proxy.
func (t *tableSource) Cell() *cell { return t.cell }

// Unlisted returns the function that fetches a tenant that the limits do not list.
func (t *tableSource) Unlisted() func(tenant string) { return t.lookup.Request }

// RegisterMetrics registers the metrics of the cells.
func (t *tableSource) RegisterMetrics(r *prometheus.Registry) {
	if t.cell != nil {
		metrics.RegisterCells(r, t.cellMetrics)
	}
}

// Run follows the table until ctx ends, and then ends the subscription.
func (t *tableSource) Run(ctx context.Context) error {
	defer t.Close()
	t.started.Store(true)
	parts := []run.Part{t.follower.Run, t.lookup.Run, t.reloadOnSignal, t.changes.run}
	if t.cell != nil {
		parts = append(parts, t.cell.run)
	}
	if t.rolloutGate.poller != nil {
		parts = append(parts, t.rolloutGate.poller.Run, t.rolloutGate.run)
	}
	return run.All(ctx, parts...)
}

// reloadOnSignal reads the table again on each signal, until ctx ends.
func (t *tableSource) reloadOnSignal(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.reload:
			_ = reload(t, bySignal, t.log)
		}
	}
}
