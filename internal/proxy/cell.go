package proxy

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/limitgate/limitgate/cluster"
	"github.com/limitgate/limitgate/config"
	"github.com/limitgate/limitgate/controlplane/admission"
	"github.com/limitgate/limitgate/controlplane/dynamo"
	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/metrics"
)

const (
	// beatEvery is the heartbeat interval of a proxy's cell.
	beatEvery = 10 * time.Second
	// addWithin spreads out the proxies of a cell that add up their admissions. After
	// reportAfter all of them have added theirs, and one of them reports the sum.
	addWithin   = 3 * time.Second
	reportAfter = 6 * time.Second
)

// cell is the cell of this proxy.
type cell struct {
	id       string
	weight   int64
	registry *dynamo.Registry
	admitted *admission.Counter
	store    *cluster.Store // of the cell; nil if this proxy is the whole cell
	log      *slog.Logger
}

// newCell returns the cell of the settings, or nil.
func newCell(s *config.Settings, registry *dynamo.Registry, log *slog.Logger) *cell {
	if s.Cell == "" {
		return nil
	}
	return &cell{id: s.Cell, weight: int64(s.CellWeight), registry: registry, admitted: admission.New(), log: log}
}

// run sends heartbeats and usage reports of the cell until ctx ends.
func (c *cell) run(ctx context.Context) error { return run.All(ctx, c.beat, c.report) }

// beat sends heartbeats of the cell until ctx ends.
func (c *cell) beat(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := c.registry.Beat(ctx, c.id, c.weight, time.Now()); err != nil && ctx.Err() == nil {
			c.log.Warn("failed to send the heartbeat of the cell, keeping its part of the limits", "cell", c.id, "error", err)
		}
		run.Sleep(ctx, beatEvery/2+rand.N(beatEvery/2))
	}
	return nil
}

// report reports the admissions of the cell at the end of each window.
func (c *cell) report(ctx context.Context) error {
	for counted := int64(-1); ; {
		now := time.Now()
		window := table.WindowAt(now, admission.Window)
		if !run.Sleep(ctx, table.WindowEnd(window, admission.Window).Sub(now)) {
			return nil
		}
		shares, whole := c.admitted.Rotate(), counted == window-1
		counted = window
		if !whole { // counted only in part, or together with the previous window
			continue
		}
		if err := c.reportWindow(ctx, window, shares); err != nil && ctx.Err() == nil {
			c.log.Warn("failed to report the admissions of the cell", "cell", c.id, "error", err)
		}
	}
}

// reportWindow adds this proxy's admissions in a window to those of its cell, and reports the sum
// if it is the first proxy to do so.
func (c *cell) reportWindow(ctx context.Context, window int64, shares map[string]float64) error {
	if c.store != nil {
		spread := rand.N(addWithin)
		run.Sleep(ctx, spread)
		if err := c.store.AddAdmitted(ctx, window, shares); err != nil {
			return err
		}
		run.Sleep(ctx, reportAfter-spread)
		var first bool
		var err error
		if shares, first, err = c.store.Admitted(ctx, window, admission.Most); err != nil || !first {
			return err
		}
	}
	return c.registry.Report(ctx, table.Report{Cell: c.id, Window: window, Shares: shares})
}

// cellSet returns the set of cells in use and its version, if there is a valid one.
func (t *tableSource) cellSet() (set table.CellSet, version int64, ok bool) {
	it, ok := t.Cells()
	if !ok {
		return set, 0, false
	}
	set, err := table.ReadCellSet(it.Body)
	return set, it.Version, err == nil
}

// ActiveCells returns how many cells share the limits, 0 if this proxy is in none.
func (t *tableSource) ActiveCells() int {
	if t.cell == nil {
		return 0
	}
	set, _, ok := t.cellSet()
	if !ok {
		return 1
	}
	return len(set.Active())
}

// CellShare returns this cell's part of each limit, 0 to 1; 0 if this proxy is in none.
func (t *tableSource) CellShare() float64 {
	if t.cell == nil {
		return 0
	}
	set, _, ok := t.cellSet()
	if !ok {
		return 1
	}
	cells, place := set.Sharing(t.cell.id, t.cell.weight)
	total := int64(0)
	for _, c := range cells {
		total += c.Weight
	}
	return float64(cells[place].Weight) / float64(total)
}

// cellMetrics returns the metrics of the cells in the current limits, at each scrape.
func (t *tableSource) cellMetrics() (m metrics.Cells) {
	limits := t.Set()
	set, version, ok := t.cellSet()
	if !ok { // this proxy enforces whole limits
		return metrics.Cells{Active: 1, Share: 1, Missed: t.cell.admitted.Missed(), Limits: limits.Limits}
	}
	m.Version, m.Active, m.Share = version, len(set.Active()), t.CellShare()
	m.Limits, m.Raised, m.Missed = limits.Limits, limits.Raised(), t.cell.admitted.Missed()
	return m
}
