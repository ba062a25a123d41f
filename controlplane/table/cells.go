package table

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Cell is a region or zone with a Redis of its own, which enforces its part of every
// limit.
type Cell struct {
	ID     string `json:"id"`
	Weight int64  `json:"weight"`
	// Draining reports that the cell gets no more traffic, and so no part of the
	// limits.
	Draining bool `json:"draining,omitempty"`
	// Gone reports that the cell has had no heartbeat for a while: it may be cut off
	// and still decide.
	Gone bool `json:"gone,omitempty"`
}

// RegisteredCell is a cell as its proxies and operators registered it.
type RegisteredCell struct {
	Cell
	Beat time.Time // the latest heartbeat, by the clock of the proxy that wrote it
}

// CellSet is the set of cells that share the limits. It is the body of the item
// KeyCells, whose version is the version of the set.
type CellSet struct {
	Cells []Cell `json:"cells"` // in the order of their ids
}

// ReadCellSet parses the body of the item KeyCells.
func ReadCellSet(body json.RawMessage) (s CellSet, err error) {
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("read cells: %w", err)
	}
	if len(s.Cells) == 0 {
		return s, errors.New("read cells: no cells")
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

// Sharing returns the cells that share the limits as one of them sees it, and its index
// among them. An inactive cell (joining, draining or gone) uses the share it would have
// if all registered cells were active. So all inactive cells of the set together use
// less than one limit beside that of the active ones. The weight of a cell that is not
// in the set is the weight passed in.
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
