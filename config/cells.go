package config

import (
	"encoding/json"
	"fmt"

	"github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/limit"
)

// CellsOf returns the part of the limits that a cell enforces, from the parts of a table.
// It returns nil for all of the limits: if own is empty, or the table has no list of
// cells. Weight is the cell's weight unless the table has another one.
func CellsOf(parts map[string]json.RawMessage, own string, weight int64) (*limit.Cells, error) {
	body := parts[table.KeyCells]
	if own == "" || body == nil {
		return nil, nil
	}
	set, err := table.ReadCellSet(body)
	if err != nil {
		return nil, fmt.Errorf("compile limits: %s: %w", table.KeyCells, err)
	}
	cells, place := set.Sharing(own, weight)
	if len(cells) > limit.MaxCells {
		return nil, fmt.Errorf("compile limits: %s: %d cells are too many: at most %d", table.KeyCells, len(cells), limit.MaxCells)
	}
	share := &limit.Cells{Own: place}
	for _, c := range cells {
		if c.Weight > limit.MaxCellWeight {
			return nil, fmt.Errorf("compile limits: %s: %s weighs %d, more than %d", table.KeyCells, c.ID, c.Weight, limit.MaxCellWeight)
		}
		share.Weights = append(share.Weights, c.Weight)
	}
	return share, nil
}
