package table

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Cell is a region or zone with a Redis of its own, which enforces its part of every limit.
type Cell struct {
	ID     string `json:"id"`
	Weight int64  `json:"weight"`
	// Draining says that it gets no traffic any more, and so no part of the limits.
	Draining bool `json:"draining,omitempty"`
	// Gone says that it was not heard of for a while: it may be cut off, and decide still.
	Gone bool `json:"gone,omitempty"`
}

// RegisteredCell is a cell as its proxies and its operators have registered it.
type RegisteredCell struct {
	Cell
	Beat time.Time // the latest heartbeat, by the clock of the proxy that wrote it
}

// CellSet says which cells share the limits. It is the body of the item KeyCells, whose
// version is the set's.
type CellSet struct {
	Cells []Cell `json:"cells"` // in the order of their ids
}

// ReadCellSet reads the body of the item KeyCells.
func ReadCellSet(body json.RawMessage) (s CellSet, err error) {
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("read cells: %w", err)
	}
	if len(s.Cells) == 0 {
		return s, errors.New("read cells: it names none")
	}
	for i, c := range s.Cells {
		if c.ID == "" || c.Weight < 1 || i > 0 && s.Cells[i-1].ID >= c.ID {
			return s, fmt.Errorf("read cells: cell %d has no id, no weight, or is out of order", i+1)
		}
	}
	return s, nil
}

// Active returns the cells that share the limits.
func (s *CellSet) Active() []Cell {
	return slices.DeleteFunc(slices.Clone(s.Cells), func(c Cell) bool { return c.Draining || c.Gone })
}

// Sharing returns the cells that share the limits as one of them sees it, and its place
// among them. One that has no part, because it has just come, drains, or was given up, takes
// the one that it would have if all that are named had theirs: however many of those that
// are named have none, together they take less than one limit beside that of the active
// ones. Its weight is the one that is named, or else what it has by itself.
func (s *CellSet) Sharing(own string, weight int64) (cells []Cell, place int) {
	byID := func(a Cell, id string) int { return cmp.Compare(a.ID, id) }
	cells = s.Active()
	if place, ok := slices.BinarySearchFunc(cells, own, byID); ok {
		return cells, place
	}
	cells = slices.Clone(s.Cells)
	place, ok := slices.BinarySearchFunc(cells, own, byID)
	if !ok {
		cells = slices.Insert(cells, place, Cell{ID: own, Weight: weight})
	}
	return cells, place
}
