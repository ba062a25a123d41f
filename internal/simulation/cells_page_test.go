package simulation

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestCells runs all scenarios of cells, checks their guarantees, and compares the page
// and its picture with the results.
func TestCells(t *testing.T) {
	out := table{headCells}
	var picture cellsPicture
	for i := range cellScenarios {
		s := &cellScenarios[i]
		t.Run(s.name, func(t *testing.T) {
			bucket, window := playCells(t, s, bucketLimit, pageSeed), playCells(t, s, windowLimit, pageSeed)
			s.check(t, bucket)
			s.check(t, window)
			out.row(s.row(bucket, window)...)
			picture.panel(s, bucket, window)
			if *show {
				fmt.Println(s.plot(bucket))
			}
		})
	}
	figures(t, "cells", out.String())
	drawn(t, "cells.svg", picture.String())
}

// drawn compares a picture with the results, or writes it.
func drawn(t *testing.T, name, text string) {
	t.Helper()
	path := filepath.Join("..", "..", "docs", name)
	if *update {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if was, err := os.ReadFile(path); err != nil || string(was) != text {
		t.Errorf("%s is not what was simulated (-update writes it): %v", path, err)
	}
}
