package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/run"
	"github.com/limitgate/limitgate/limit"
)

const (
	// cellsEvery is how often the registry of cells is read.
	cellsEvery = 2 * time.Second
	// CellGone is the age of its latest heartbeat from which a cell is gone: three
	// heartbeats are missed by then, and clocks may differ a little.
	CellGone = 30 * time.Second
	// CellAhead is how far the latest heartbeat of a cell may be ahead of this clock. A
	// cell whose clock is further ahead is gone: otherwise it would stay active for
	// that much longer after it ended.
	CellAhead = time.Minute
	// cellForgotten is the age of its latest heartbeat from which a cell is left out of
	// the set.
	cellForgotten = 24 * time.Hour
	// Actor is the actor of all items that the control plane writes.
	Actor = "control-plane"
)

// Registry reads the registered cells.
type Registry interface {
	// Cells returns the cells in the order of their ids.
	Cells(ctx context.Context) ([]table.RegisteredCell, error)
}

// Cells maintains the set of cells that share the limits, as an item of the table of
// limits: proxies receive it like any other item. Only one control plane at a time
// writes it.
type Cells struct {
	Registry Registry
	Items    Items
	// HoldsLock reports whether this control plane writes the item now.
	HoldsLock func(ctx context.Context) (bool, error)
	Log       *slog.Logger

	heard   map[string]heartbeat // cells with a recent heartbeat, by their ids
	allGone bool                 // no registered cell had a recent heartbeat
	// lastRead is when the registry was last read, and readFailed reports that a reading
	// failed since.
	lastRead    time.Time
	readFailed  bool
	wrongClocks failures // heartbeats by wrong clocks
}

// Run updates the cells until ctx ends.
func (c *Cells) Run(ctx context.Context) error {
	var failed failures
	for ctx.Err() == nil {
		holds, err := c.HoldsLock(ctx)
		if err == nil && holds {
			err = c.Update(ctx, time.Now())
		}
		if n := failed.due(err); n > 0 && ctx.Err() == nil {
			c.Log.Error("failed to update cells, retrying", "error", err, "failures", n)
		}
		run.Sleep(ctx, cellsEvery)
	}
	return nil
}

// Update writes the set of cells that share the limits, if it has changed. If all of
// them seem gone, the control plane's own view is wrong, and nothing changes.
func (c *Cells) Update(ctx context.Context, now time.Time) error {
	known, err := c.Registry.Cells(ctx)
	if err != nil {
		c.readFailed = true
		return fmt.Errorf("update cells: %w", err)
	}
	it, _, err := c.Items.Get(ctx, table.KeyCells)
	if err != nil {
		return fmt.Errorf("update cells: %w", err)
	}
	before, err := table.ReadCellSet(it.Body)
	c.keepRecent(known, before, now)
	next := Members(known, now)
	if c.noteAllGone(known, now); len(next.Active()) == 0 && len(it.Body) > 0 || len(next.Cells) == 0 {
		return nil
	}
	if err == nil && !it.Deleted && slices.Equal(before.Cells, next.Cells) {
		return nil
	}
	body, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("update cells: %w", err)
	}
	written, err := c.Items.Put(ctx, table.Item{Key: table.KeyCells, Version: it.Version, Body: body, Actor: Actor, At: now.UTC()})
	if err != nil {
		return fmt.Errorf("update cells: %w", err)
	}
	c.Log.Info("cells changed", "version", written.Version, "cells", string(body))
	for _, cell := range known {
		if ahead := cell.Beat.Sub(now); ahead > CellAhead {
			c.Log.Error("clock of cell is too far ahead, treating cell as gone", "cell", cell.ID, "ahead", ahead.Round(time.Second))
		}
	}
	return nil
}

// noteAllGone logs once when no cell has a recent heartbeat. New cells and other weights
// change nothing then; if cells run, the clock of this control plane is wrong.
func (c *Cells) noteAllGone(known []table.RegisteredCell, now time.Time) {
	gone := len(known) > 0 && allGone(known, now)
	if gone && !c.allGone {
		latest := slices.MaxFunc(known, func(a, b table.RegisteredCell) int { return a.Beat.Compare(b.Beat) })
		c.Log.Error("all cells seem gone, keeping them: is the clock of this control plane right?", "latest_heartbeat", latest.Beat, "clock", now)
	}
	c.allGone = gone
}

// heartbeat is the latest recent heartbeat of a cell.
type heartbeat struct {
	at time.Time
	// assumed reports that there was no heartbeat, because the registry could not be
	// written or read.
	assumed bool
}

// keepRecent keeps the latest recent heartbeat of a cell for CellGone, although a proxy of
// the cell with a wrong clock overwrites it. When the registry was unreachable, for the
// cells or for this control plane, the cells that were active before get a heartbeat of
// now: the first cell that writes again must not get the shares of all others.
func (c *Cells) keepRecent(known []table.RegisteredCell, before table.CellSet, now time.Time) {
	active := map[string]bool{}
	if (c.allGone || c.readFailed && now.Sub(c.lastRead) > CellGone/2) && !allGone(known, now) {
		for _, cell := range before.Active() {
			active[cell.ID] = true
		}
	}
	c.lastRead, c.readFailed = now, false
	heard := map[string]heartbeat{}
	for i := range known {
		cell := &known[i]
		switch age, last := now.Sub(cell.Beat), c.heard[cell.ID]; {
		case recent(age):
			heard[cell.ID] = heartbeat{at: now.Add(-max(age, 0))}
		case active[cell.ID]:
			heard[cell.ID], cell.Beat = heartbeat{now, true}, now
		case !last.at.IsZero() && now.Sub(last.at) < CellGone:
			if !last.assumed && c.wrongClocks.count() > 0 {
				c.Log.Warn("clock of proxy in cell is wrong", "cell", cell.ID, "by", -age.Round(time.Second))
			}
			heard[cell.ID], cell.Beat = last, last.at
		}
	}
	c.heard = heard
}

// recent reports whether a cell whose latest heartbeat has the given age is active. The age
// is negative if the clock of the cell is ahead.
func recent(age time.Duration) bool { return age >= -CellAhead && age < CellGone }

// allGone reports whether no cell has a recent heartbeat.
func allGone(known []table.RegisteredCell, now time.Time) bool {
	return !slices.ContainsFunc(known, func(cell table.RegisteredCell) bool {
		return recent(now.Sub(cell.Beat))
	})
}

// defaultWeight is the weight of a cell whose registered weight is invalid.
const defaultWeight = 100

// Members returns the registered cells with their states at a given time, in the order
// of their ids. If there are more than limit.MaxCells, it returns those with the latest
// heartbeats.
func Members(known []table.RegisteredCell, now time.Time) (set table.CellSet) {
	if len(known) > limit.MaxCells {
		known = slices.Clone(known)
		heard := func(c table.RegisteredCell) time.Time {
			if c.Beat.Sub(now) > CellAhead {
				return time.Time{} // by a wrong clock
			}
			return c.Beat
		}
		slices.SortStableFunc(known, func(a, b table.RegisteredCell) int { return heard(b).Compare(heard(a)) })
		known = known[:limit.MaxCells]
		slices.SortFunc(known, func(a, b table.RegisteredCell) int { return cmp.Compare(a.ID, b.ID) })
	}
	for _, c := range known {
		if c.Weight < 1 || c.Weight > limit.MaxCellWeight {
			c.Weight = defaultWeight
		}
		if age := now.Sub(c.Beat); c.ID != "" && age < cellForgotten {
			c.Gone = !recent(age)
			set.Cells = append(set.Cells, c.Cell)
		}
	}
	return set
}
