package simulation

import (
	"fmt"
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
)

// pageSeed is that of the figures in the docs.
const pageSeed = 1

// TestFleet plays each scenario with a seed of its own, which it prints.
func TestFleet(t *testing.T) {
	seed := storetest.Seed(t)
	fleetTable(t, seed)
}

// fleetTable plays all scenarios, judges them and returns the table.
func fleetTable(t *testing.T, seed uint64) table {
	t.Helper()
	out := table{headFleet}
	for i := range scenarios {
		s := &scenarios[i]
		t.Run(s.name, func(t *testing.T) {
			f := play(t, s, seed)
			s.judge(t, f)
			out.row(s.row(f)...)
		})
	}
	return out
}

func TestTry(t *testing.T) {
	fmt.Println(fleetTable(t, pageSeed))
	fmt.Println(probeTogether(1).shape())
}
