package controlplane

import (
	"log/slog"
	"testing"
	"time"

	"github.com/limitgate/limitgate/controlplane/table"
)

// TestCellsAfterAnOutage: when no heartbeat could be written or read for a while, the
// first cell that writes one does not get the shares of all others, and one without
// heartbeats is gone in the end.
func TestCellsAfterAnOutage(t *testing.T) {
	for name, outage := range map[string]func(*fleet){
		"heartbeats were not written": func(*fleet) {},
		"the registry was not read":   func(f *fleet) { f.err = errDown },
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Now()
			f := &fleet{}
			c := Cells{Registry: f, Items: f, Log: slog.New(slog.DiscardHandler)}
			beat := func(id string, age time.Duration) table.RegisteredCell {
				return table.RegisteredCell{Cell: table.Cell{ID: id, Weight: 1}, Beat: now.Add(-age)}
			}
			update := func(active int) {
				t.Helper()
				if err := c.Update(t.Context(), now); err != nil && f.err == nil {
					t.Fatal(err)
				}
				if set, err := table.ReadCellSet(f.item.Body); err != nil || len(set.Active()) != active {
					t.Errorf("want %d active cells: %s", active, f.item.Body)
				}
			}
			f.cells = []table.RegisteredCell{beat("a", 0), beat("b", 0), beat("c", 0)}
			update(3)
			outage(f)
			now = now.Add(40 * time.Second)
			update(3)
			f.err, now = nil, now.Add(2*time.Second)
			f.cells = []table.RegisteredCell{beat("a", 0), beat("b", 43*time.Second), beat("c", 44*time.Second)}
			update(3)
			now = now.Add(20 * time.Second)
			f.cells[0], f.cells[1] = beat("a", 0), beat("b", 0)
			update(3)
			now = now.Add(11 * time.Second)
			f.cells[0], f.cells[1] = beat("a", 0), beat("b", 0)
			update(2)
		})
	}
}
