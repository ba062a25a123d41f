package simulation

import (
	"math/rand/v2"
	"slices"
	"testing"

	limits "github.com/limitgate/limitgate/controlplane/table"
	"github.com/limitgate/limitgate/internal/storetest"
)

const (
	// troubleEnds is when all faults are over in a run of any seed, and anySeedEnds when
	// the run ends: later by at least a heartbeat, a look, a message and a window.
	troubleEnds = 150 * second
	anySeedEnds = troubleEnds + beatEvery + lookEvery + 5*second + 2*cellSpan + 3*second
)

// TestCellsOfAnySeed makes cells of any weights join, leave, be cut off and come back at
// random, under any algorithm. In no ten seconds they admit more than the sum of the
// largest parts that each of them had in that time; and once all faults are over, no more
// than the limit.
func TestCellsOfAnySeed(t *testing.T) {
	seed := storetest.Seed(t)
	for name, rule := range map[string]string{"bucket": bucketLimit, "window": windowLimit, "log": logLimit} {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 6))
			weights := make([]int64, 2+random.IntN(8))
			for i := range weights {
				weights[i] = 1 + random.Int64N(10)
			}
			r := newCells(t, seed, rule, weights)
			r.slowest = 1 + random.Int64N(5*second)
			for range 5 + random.IntN(25) {
				r.add(random.Int64N(troubleEnds), func() { r.trouble(random) })
			}
			r.add(troubleEnds, func() { r.mend() })
			r.run(anySeedEnds)
			r.checkParts(t)
			if o := r.overAdmission(); o.last > 1+r.slack() || o.last < 0.9 {
				t.Errorf("once all was well again %.4f times the limit was admitted", o.last)
			}
		})
	}
}

// trouble causes a random change or fault of a cell, never a drain of the first.
func (r *cellsRun) trouble(random *rand.Rand) {
	c := r.cells[random.IntN(len(r.cells))]
	switch random.IntN(9) {
	case 0:
		r.join(1 + random.Int64N(10))
	case 1, 2:
		c.cut = true
	case 3:
		c.mute = true
	case 4:
		r.heal(c)
	case 5:
		r.change(c, weighs(1+random.Int64N(10)))
	case 6:
		c.idle = !c.idle
	case 7:
		r.forget(c)
	default:
		r.change(c, func(known *limits.Cell) { known.Draining = c != r.cells[0] && !known.Draining })
	}
}

// mend ends all faults: draining cells get no more requests, and all others do.
func (r *cellsRun) mend() {
	for _, c := range r.cells {
		r.heal(c)
		c.idle = r.known[c.id].Draining
	}
}

// checkParts compares all that was admitted with the parts of the cells.
func (r *cellsRun) checkParts(t *testing.T) {
	t.Helper()
	stride := max(r.stride(), second/2)
	for begin := int64(0); begin+cellSpan <= r.now; begin += stride {
		largest := make([]float64, len(r.cells))
		for _, parts := range r.parts[begin/cellTick : (begin+cellSpan)/cellTick] {
			for i, part := range parts {
				largest[i] = max(largest[i], part)
			}
		}
		sum := 0.0
		for _, part := range largest {
			sum += part
		}
		if times := r.times(begin + cellSpan); times > sum+r.slack() {
			t.Fatalf("%.4f times the limit in the ten seconds from %s, and the parts add up to %.4f: %.3f", times, seconds(begin), sum, largest)
		}
	}
}

// TestPartsOfCells: the part that a cell should enforce is computed here independently.
func TestPartsOfCells(t *testing.T) {
	r := newCells(t, pageSeed, bucketLimit, []int64{1, 2, 5, 8})
	first := r.cells[0]
	r.run(second)
	if want := []float64{1 / 16.0, 2 / 16.0, 5 / 16.0, 8 / 16.0}; !slices.Equal(r.parts[0], want) {
		t.Errorf("parts of %v, want %v", r.parts[0], want)
	}
	r.change(first, drains(true))
	r.cells[1].mute = true
	r.run(given)
	want := []float64{1 / 16.0, 2 / 16.0, 5 / 13.0, 8 / 13.0} // of all, or of the active cells
	if last := r.parts[len(r.parts)-1]; !slices.Equal(last, want) {
		t.Errorf("parts of %v where the first drains and the second is not heard, want %v", last, want)
	}
	joined := r.join(4)
	if part := joined.partOf(joined.proxies[0]); part != 0.2 {
		t.Errorf("the joining cell has %v, want 0.2", part)
	}
	r.forget(first)
	r.look()
	again := r.load(first.id, first.weight)
	if part := first.partOf(&proxyOfCell{Catalog: again}); part != 0.05 {
		t.Errorf("the forgotten cell has %v, want 0.05", part)
	}
}
