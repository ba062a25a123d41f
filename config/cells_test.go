package config

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/limitgate/limitgate/controlplane/table"
)

func TestCellsOf(t *testing.T) {
	said := map[string]json.RawMessage{table.KeyCells: json.RawMessage(`{"cells":[{"id":"a","weight":1},{"id":"b","weight":3}]}`)}
	if cells, err := CellsOf(said, "", 5); cells != nil || err != nil {
		t.Errorf("outside of cells: %+v, %v", cells, err)
	}
	if cells, err := CellsOf(nil, "a", 5); cells != nil || err != nil {
		t.Errorf("without a list of cells: %+v, %v", cells, err)
	}
	if cells, err := CellsOf(said, "b", 5); err != nil || cells.Own != 1 || !slices.Equal(cells.Weights, []int64{1, 3}) {
		t.Errorf("of b: %+v, %v", cells, err)
	}
	for body, want := range map[string]string{
		`{"cells":[{"id":"a"}]}`:                       "CELLS: read cells: cell 1 has no id",
		`{"cells":[{"id":"a","weight":100000000000}]}`: "a weighs 100000000000",
		manyCells(1001):                                "1002 cells are too many",
	} {
		if _, err := CellsOf(map[string]json.RawMessage{table.KeyCells: json.RawMessage(body)}, "own", 5); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, not %q", body, err, want)
		}
	}
}

func manyCells(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`{"id":"c%06d","weight":1}`, i))
	}
	return `{"cells":[` + strings.Join(all, ",") + `]}`
}

// TestCellNeedsATable: a cell without a table of limits, or of cells, is a mistake.
func TestCellNeedsATable(t *testing.T) {
	for _, args := range [][]string{{"--cells-id", "a"}, {"--cells-id", "a", "--limits", "dynamodb://limits"}, {"--cells-id", "a", "--cells-table", "cells"}} {
		if _, _, err := load(args, nil, ""); err == nil || !strings.Contains(err.Error(), "cells share limits that are in a table") {
			t.Errorf("%v: %v", args, err)
		}
	}
	if _, _, err := load([]string{"--cells-id", "a", "--cells-table", "cells", "--limits", "dynamodb://limits"}, nil, ""); err != nil {
		t.Error(err)
	}
}
