package controlplane

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// fleet is a registry and a table of one item, in memory.
type fleet struct {
	cells  []table.RegisteredCell
	item   table.Item
	writes int
	err    error // of reading the cells
}

func (f *fleet) Cells(context.Context) ([]table.RegisteredCell, error) { return f.cells, f.err }

func (f *fleet) Get(_ context.Context, key string) (table.Item, bool, error) {
	if f.item.Key != "" && f.item.Key != key {
		return table.Item{}, false, nil
	}
	return f.item, f.item.Version > 0, nil
}

func (f *fleet) Put(_ context.Context, it table.Item) (table.Item, error) {
	if it.Version != f.item.Version {
		return it, errors.New("somebody was faster")
	}
	it.Version++
	f.item = it
	f.writes++
	return it, nil
}

// TestCellsUpdate: the item lists the cells. It is written only when the set changes,
// and never without cells.
func TestCellsUpdate(t *testing.T) {
	now := time.Now()
	f := &fleet{}
	cell := func(id string, draining bool, age time.Duration) table.RegisteredCell {
		return table.RegisteredCell{Cell: table.Cell{ID: id, Weight: 2, Draining: draining}, Beat: now.Add(-age)}
	}
	for _, step := range []struct {
		cells  []table.RegisteredCell
		body   string
		writes int
	}{
		{nil, ``, 0},
		{[]table.RegisteredCell{cell("a", false, 0)}, `{"cells":[{"id":"a","weight":2}]}`, 1},
		{[]table.RegisteredCell{cell("a", false, 20*time.Second)}, `{"cells":[{"id":"a","weight":2}]}`, 1},
		{[]table.RegisteredCell{cell("a", false, 0), cell("b", true, 0)}, `{"cells":[{"id":"a","weight":2},{"id":"b","weight":2,"draining":true}]}`, 2},
		{[]table.RegisteredCell{cell("a", false, 0), cell("b", false, time.Minute)}, `{"cells":[{"id":"a","weight":2},{"id":"b","weight":2,"gone":true}]}`, 3},
		{[]table.RegisteredCell{cell("a", false, 0), cell("b", false, -365*24*time.Hour)}, `{"cells":[{"id":"a","weight":2},{"id":"b","weight":2,"gone":true}]}`, 3}, // a clock a year ahead
		{[]table.RegisteredCell{cell("a", false, -CellAhead/2), cell("b", false, -2*CellAhead)}, `{"cells":[{"id":"a","weight":2},{"id":"b","weight":2,"gone":true}]}`, 3},
		{[]table.RegisteredCell{cell("a", false, 0), cell("b", false, 25*time.Hour)}, `{"cells":[{"id":"a","weight":2}]}`, 4},
		{[]table.RegisteredCell{cell("a", false, time.Hour), cell("b", false, time.Hour)}, `{"cells":[{"id":"a","weight":2}]}`, 4},
		{[]table.RegisteredCell{cell("a", true, 0)}, `{"cells":[{"id":"a","weight":2}]}`, 4}, // no other cell has its share
		{nil, `{"cells":[{"id":"a","weight":2}]}`, 4},
		{[]table.RegisteredCell{cell("b", false, 0)}, `{"cells":[{"id":"b","weight":2}]}`, 5},
	} {
		f.cells = step.cells
		c := Cells{Registry: f, Items: f, Log: slog.New(slog.DiscardHandler)} // one without heartbeats so far
		if err := c.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if string(f.item.Body) != step.body || f.writes != step.writes || f.writes > 0 && f.item.Actor != Actor {
			t.Errorf("with %+v it says %s after %d writes, not %s after %d", step.cells, f.item.Body, f.writes, step.body, step.writes)
		}
	}
}

// TestClocksOfACell: a proxy with a wrong clock that overwrites the heartbeats of the
// other proxies of its cell changes nothing. A cell without any other heartbeat is
// gone.
func TestClocksOfACell(t *testing.T) {
	for _, wrong := range []time.Duration{-365 * 24 * time.Hour, -2 * time.Minute, 2 * time.Minute, 365 * 24 * time.Hour} {
		f, now := &fleet{}, time.Now()
		c := Cells{Registry: f, Items: f, Log: slog.New(slog.DiscardHandler)}
		update := func(beat time.Time) {
			t.Helper()
			other := table.RegisteredCell{Cell: table.Cell{ID: "other", Weight: 1}, Beat: now}
			f.cells = []table.RegisteredCell{{Cell: table.Cell{ID: "a", Weight: 1}, Beat: beat}, other}
			if err := c.Update(t.Context(), now); err != nil {
				t.Fatal(err)
			}
			now = now.Add(2 * time.Second)
		}
		update(now)
		for range 100 {
			for range 5 {
				update(now.Add(wrong))
			}
			update(now)
		}
		if f.writes != 1 {
			t.Errorf("a clock %s off: the cells were written %d times", wrong, f.writes)
		}
		for range 20 {
			update(now.Add(wrong))
		}
		if set, err := table.ReadCellSet(f.item.Body); err != nil || len(set.Active()) != 1 {
			t.Errorf("a clock %s off, and no other: %s, %v", wrong, f.item.Body, err)
		}
	}
}

// TestClockOfThisControlPlane: a control plane with a wrong clock logs once that it
// sees no active cell, because it adds no new one.
func TestClockOfThisControlPlane(t *testing.T) {
	for _, off := range []time.Duration{-365 * 24 * time.Hour, -2 * time.Minute, 0, 2 * time.Minute, 365 * 24 * time.Hour} {
		var log strings.Builder
		f, now := &fleet{}, time.Now()
		c := Cells{Registry: f, Items: f, Log: slog.New(slog.NewTextHandler(&log, nil))}
		for range 100 {
			f.cells = []table.RegisteredCell{{Cell: table.Cell{ID: "a", Weight: 1}, Beat: now}, {Cell: table.Cell{ID: "b", Weight: 1}, Beat: now}}
			if err := c.Update(t.Context(), now.Add(off)); err != nil {
				t.Fatal(err)
			}
			now = now.Add(2 * time.Second)
		}
		if n := strings.Count(log.String(), "is the clock of this control plane right?"); n != 1 && off != 0 || n != 0 && off == 0 {
			t.Errorf("%s off, it is said %d times\n%s", off, n, &log)
		}
	}
}

// TestFirstCellOfAnotherTime: whatever the heartbeat of the first cell is, the item
// that is written can be parsed.
func TestFirstCellOfAnotherTime(t *testing.T) {
	now := time.Now()
	for what, beat := range map[string]time.Time{
		"a day behind": now.Add(-25 * time.Hour), "zero": time.UnixMilli(0), "negative": time.UnixMilli(-1 << 62), "ahead": now.Add(time.Hour),
	} {
		f := &fleet{cells: []table.RegisteredCell{{Cell: table.Cell{ID: "a", Weight: 1}, Beat: beat}}}
		c := &Cells{Registry: f, Items: f, Log: slog.New(slog.DiscardHandler)}
		if err := c.Update(t.Context(), now); err != nil {
			t.Fatal(err)
		}
		if f.writes == 0 {
			continue
		}
		if _, err := table.ReadCellSet(f.item.Body); err != nil {
			t.Errorf("%s: written is %s, and proxies say: %v", what, f.item.Body, err)
		}
	}
}
