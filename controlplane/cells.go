package controlplane

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

const (
	// cellsEvery is how often the registry of cells is looked at.
	cellsEvery = 2 * time.Second
	// CellGone is how old the latest heartbeat of a cell may be: three are missed by then,
	// and clocks may differ a little.
	CellGone = 30 * time.Second
	// CellAhead is how far ahead of this clock the latest heartbeat of a cell may be. A cell
	// whose clock is further ahead is gone: it would be there for as long after its end.
	CellAhead = time.Minute
	// cellForgotten is how old it may be for a cell to be named at all.
	cellForgotten = 24 * time.Hour
	// Actor is who writes what the control plane writes.
	Actor = "control-plane"
)

// Registry knows the cells that there are.
type Registry interface {
	// Cells returns them in the order of their ids.
	Cells(ctx context.Context) ([]table.RegisteredCell, error)
}

// Cells says which cells share the limits, by an item of the table of limits: proxies are
// told of it as of any other. It is alone to say so.
type Cells struct {
	Registry Registry
	Items    Items
	// HoldsLock reports whether this control plane is the one that says so now.
	HoldsLock func(ctx context.Context) (bool, error)
	Log       *slog.Logger

	heard map[string]heartbeat // of cells that had one of about now, by their ids
	blind bool                 // all cells seem gone
	// looked is when the registry was read last, and missed says that it could not be since.
	looked time.Time
	missed bool
	skewed failures // of clocks
}

// Run looks after the cells until ctx ends.
func (c *Cells) Run(ctx context.Context) error {
	var failed failures
	for ctx.Err() == nil {
		alone, err := c.HoldsLock(ctx)
		if err == nil && alone {
			err = c.Update(ctx, time.Now())
		}
		if n := failed.due(err); n > 0 && ctx.Err() == nil {
			c.Log.Error("the cells stay as they are", "error", err, "failures", n)
		}
		wait(ctx, cellsEvery)
	}
	return nil
}

// Update writes which cells share the limits, if that is not what is written. Where all of
// them seem gone it is this control plane that knows nothing, and nothing changes.
func (c *Cells) Update(ctx context.Context, now time.Time) error {
	known, err := c.Registry.Cells(ctx)
	if err != nil {
		c.missed = true
		return fmt.Errorf("update cells: %w", err)
	}
	it, _, err := c.Items.Get(ctx, table.KeyCells)
	if err != nil {
		return fmt.Errorf("update cells: %w", err)
	}
	before, err := table.ReadCellSet(it.Body)
	c.smooth(known, before, now)
	next := Members(known, now)
	if c.noteBlind(known, now); len(next.Active()) == 0 && len(it.Body) > 0 || len(next.Cells) == 0 {
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
	c.Log.Info("the cells have changed", "version", written.Version, "cells", string(body))
	for _, cell := range known {
		if ahead := cell.Beat.Sub(now); ahead > CellAhead {
			c.Log.Error("the clock of a cell is too far ahead, and it counts as gone", "cell", cell.ID, "ahead", ahead.Round(time.Second))
		}
	}
	return nil
}

// noteBlind logs once when no heartbeat is of about now: new cells and other weights change nothing
// then, and it is the clock of this control plane that is wrong, if cells run.
func (c *Cells) noteBlind(known []table.RegisteredCell, now time.Time) {
	blind := len(known) > 0 && allGone(known, now)
	if blind && !c.blind {
		latest := slices.MaxFunc(known, func(a, b table.RegisteredCell) int { return a.Beat.Compare(b.Beat) })
		c.Log.Error("all cells count as gone, and stay as they are: is the clock of this control plane right?", "latest heartbeat", latest.Beat, "clock", now)
	}
	c.blind = blind
}

// heartbeat is the latest heartbeat of a cell that counts.
type heartbeat struct {
	at time.Time
	// assumed says that there was none: nobody could write or read it.
	assumed bool
}

// smooth has the heartbeat of a cell count for as long as it would, although one of its proxies
// with a clock that is wrong writes over it. When the registry was out of reach, of the cells or of
// this control plane, the cells that were active before count as heard now: the first one that
// writes again must not get the parts of all others.
func (c *Cells) smooth(known []table.RegisteredCell, before table.CellSet, now time.Time) {
	active := map[string]bool{}
	if (c.blind || c.missed && now.Sub(c.looked) > CellGone/2) && !allGone(known, now) {
		for _, cell := range before.Active() {
			active[cell.ID] = true
		}
	}
	c.looked, c.missed = now, false
	heard := map[string]heartbeat{}
	for i := range known {
		cell := &known[i]
		switch age, last := now.Sub(cell.Beat), c.heard[cell.ID]; {
		case age > -CellAhead && age < CellGone:
			heard[cell.ID] = heartbeat{at: now.Add(-max(age, 0))}
		case active[cell.ID]:
			heard[cell.ID], cell.Beat = heartbeat{now, true}, now
		case !last.at.IsZero() && now.Sub(last.at) < CellGone:
			if !last.assumed && c.skewed.due(errClock) > 0 {
				c.Log.Warn("the clock of a proxy of a cell is wrong", "cell", cell.ID, "by", -age.Round(time.Second))
			}
			heard[cell.ID], cell.Beat = last, last.at
		}
	}
	c.heard = heard
}

// errClock is a heartbeat of a clock that is wrong.
var errClock = errors.New("the heartbeat is not of about now")

// allGone reports whether no heartbeat is of about now.
func allGone(known []table.RegisteredCell, now time.Time) bool {
	return !slices.ContainsFunc(known, func(cell table.RegisteredCell) bool {
		age := now.Sub(cell.Beat)
		return age < CellGone && age >= -CellAhead
	})
}

// defaultWeight is what a cell has whose own weight is none.
const defaultWeight = 100

// Members returns the registered cells as they are at an instant, in the order of their ids;
// of too many those that were heard of last.
func Members(known []table.RegisteredCell, now time.Time) (set table.CellSet) {
	if len(known) > limit.MaxCells {
		known = slices.Clone(known)
		heard := func(c table.RegisteredCell) time.Time {
			if c.Beat.Sub(now) > CellAhead {
				return time.Time{} // by a clock that is wrong
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
			c.Gone = age >= CellGone || age < -CellAhead
			set.Cells = append(set.Cells, c.Cell)
		}
	}
	return set
}
