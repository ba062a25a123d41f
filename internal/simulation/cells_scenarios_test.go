package simulation

import (
	"slices"
	"testing"

	limits "github.com/limitgate/limitgate/table"
)

const (
	// cellCount is how many cells of equal weight there are, and all the same for bounds.
	cellCount = 8
	all       = float64(cellCount)
	// happens is when it happens, in the middle of a second, of a window and of a look.
	happens = 21*second + second/2
	// given is when a cell that is not heard of since then has been given up for sure:
	// 30 s after its last heartbeat, and the look after that.
	given = happens + 32*second
)

// cellScenario is something that happens to cells.
type cellScenario struct {
	name string
	// bound is how many times the limit is admitted at most, by the rules that stand on
	// the page.
	bound float64
	// lasts says that it comes near the bound for at least ten seconds.
	lasts bool
	// after is how many times it is in the end.
	after float64
	// end is when the run ends, slowest how long a message may be on its way; 0 means what
	// most have.
	end, slowest int64
	// strangers have never been told of each other.
	strangers bool
	begin     func(r *cellsRun)
}

var cellScenarios = []cellScenario{
	{name: "nothing", bound: 1, lasts: true, after: 1},
	{name: "one joins", bound: 1 + 1/(all+1), after: 1, begin: func(r *cellsRun) {
		r.add(happens, func() { r.join(1) })
	}},
	{name: "eight join at once", bound: 1 + 8/(all+1), after: 1, begin: func(r *cellsRun) {
		r.add(happens, func() {
			for range 8 {
				r.join(1)
			}
		})
	}},
	{name: "the weight of one becomes 8; messages take up to 5 s", bound: 1 + 8/(all+7) - 1/all, after: 1, slowest: 5 * second, begin: func(r *cellsRun) {
		r.add(happens, func() { r.change(r.cells[0], func(c *limits.Cell) { c.Weight = 8 }) })
	}},
	{name: "one dies", bound: 1, lasts: true, after: 1, begin: func(r *cellsRun) {
		r.add(happens, func() { r.cells[0].cut, r.cells[0].idle = true, true })
	}},
	{name: "one drains, and is asked for 20 s more", bound: 1 + 1/all, lasts: true, after: 1, begin: func(r *cellsRun) {
		r.add(happens, func() { r.change(r.cells[0], func(c *limits.Cell) { c.Draining = true }) })
		r.add(happens+20*second, func() { r.cells[0].idle = true })
	}},
	{name: "one is cut off", bound: 1 + 1/all, lasts: true, after: 1 + 1/all, begin: cutOff(1)},
	{name: "one is cut off for 60 s", bound: 1 + 1/all, lasts: true, after: 1, begin: cutOffFor(1, 60*second)},
	{name: "one is cut off as another joins; messages take up to 5 s", bound: 1 + 1/all, lasts: true, after: 1 + 1/all, slowest: 5 * second, begin: func(r *cellsRun) {
		cutOff(1)(r)
		r.add(happens, func() { r.join(1) })
	}},
	{name: "the same, and one more joins when the first is given up", bound: 1 + 1/all + 1/(all+1), lasts: true, after: 1 + 1/all, slowest: 5 * second, begin: func(r *cellsRun) {
		cutOff(1)(r)
		r.add(happens, func() { r.join(1) })
		r.add(given, func() { r.join(1) })
	}},
	{name: "half are cut off", bound: 1 + all/2/all, lasts: true, after: 1 + all/2/all, begin: cutOff(cellCount / 2)},
	{name: "half are cut off for 60 s", bound: 1 + all/2/(all/2+1), after: 1, begin: cutOffFor(cellCount/2, 60*second)},
	{name: "all but one are cut off", bound: 1 + (all-1)/all, lasts: true, after: 1 + (all-1)/all, begin: cutOff(cellCount - 1)},
	{name: "all but one are cut off for 60 s", bound: 1 + (all-1)/2, after: 1, begin: cutOffFor(cellCount-1, 60*second)},
	{name: "half are no longer heard, and hear", bound: 1 + all/2/(all/2+1), lasts: true, after: 1 + all/2/(all/2+1), begin: func(r *cellsRun) {
		r.add(happens, func() {
			for _, c := range r.cells[:cellCount/2] {
				c.mute = true
			}
		})
	}},
	{name: "all but one are cut off, one each 40 s", bound: harmonic(cellCount), lasts: true, after: harmonic(cellCount), end: 360 * second, begin: func(r *cellsRun) {
		for i, c := range r.cells[:cellCount-1] {
			r.add(happens+int64(i)*40*second, func() { c.cut = true })
		}
	}},
	{name: "all start anew; the control plane does so 20 s later", bound: all, lasts: true, after: 1, strangers: true, begin: func(r *cellsRun) {
		r.beginLooking(20 * second)
	}},
}

// harmonic returns 1 + 1/2 + ... + 1/n.
func harmonic(n int) (sum float64) {
	for i := range n {
		sum += 1 / float64(i+1)
	}
	return sum
}

// cutOff cuts the first cells off, which are asked as before.
func cutOff(cells int) func(*cellsRun) {
	return func(r *cellsRun) {
		r.add(happens, func() {
			for _, c := range r.cells[:cells] {
				c.cut = true
			}
		})
	}
}

func cutOffFor(cells int, time int64) func(*cellsRun) {
	return func(r *cellsRun) {
		cutOff(cells)(r)
		r.add(happens+time, func() {
			for _, c := range r.cells[:cells] {
				r.heal(c)
			}
		})
	}
}

// playCells runs a scenario under a limit.
func playCells(tb testing.TB, s *cellScenario, rule string, seed uint64) *cellsRun {
	tb.Helper()
	begin := newCells
	if s.strangers {
		begin = newStrangers
	}
	r := begin(tb, seed, rule, slices.Repeat([]int64{1}, cellCount))
	if s.slowest > 0 {
		r.slowest = s.slowest
	}
	if s.begin != nil {
		s.begin(r)
	}
	if s.end == 0 {
		s.end = 120 * second
	}
	r.run(s.end)
	return r
}
