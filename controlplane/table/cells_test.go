package table

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestReadCellSet(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{"cells":[{"weight":1}]}`, `{"cells":[{"id":"a"}]}`, `{"cells":[{"id":"a","weight":-1}]}`,
		`{"cells":[{"id":"b","weight":1},{"id":"a","weight":1}]}`, `{"cells":[{"id":"a","weight":1},{"id":"a","weight":1}]}`,
	} {
		if set, err := ReadCellSet(json.RawMessage(body)); err == nil {
			t.Errorf("%s is read as %+v", body, set)
		}
	}
}

// TestSharing: an active cell has its index. An inactive cell counts all registered
// cells as active, and itself by its known weight.
func TestSharing(t *testing.T) {
	set, err := ReadCellSet(json.RawMessage(`{"cells":[{"id":"b","weight":2},{"id":"d","weight":4,"draining":true},{"id":"f","weight":6},{"id":"g","weight":8,"gone":true}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		own     string
		weights []int64
		place   int
	}{
		{"b", []int64{2, 6}, 0},
		{"f", []int64{2, 6}, 1},
		{"d", []int64{2, 4, 6, 8}, 1},
		{"g", []int64{2, 4, 6, 8}, 3},
		{"a", []int64{9, 2, 4, 6, 8}, 0},
		{"z", []int64{2, 4, 6, 8, 9}, 4},
	} {
		cells, place := set.Sharing(c.own, 9)
		var weights []int64
		for _, cell := range cells {
			weights = append(weights, cell.Weight)
		}
		if !slices.Equal(weights, c.weights) || place != c.place || cells[place].ID != c.own {
			t.Errorf("%s is %d of %v, not %d of %v", c.own, place, weights, c.place, c.weights)
		}
	}
	if len(set.Active()) != 2 || len(set.Cells) != 4 {
		t.Errorf("the set has become %+v", set)
	}
}
