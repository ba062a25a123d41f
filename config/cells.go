package config

import (
	"encoding/json"
	"fmt"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/controlplane/table"
)

// CellsOf returns which part of the limits a cell enforces by the parts of a table, nil for
// all of it: because own is empty, or nobody has said yet which cells there are. Weight is
// what the cell has unless the table says another one.
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
