package simulation

import (
	"slices"
	"testing"

	limits "github.com/limitgate/limitgate/controlplane/table"
)

const (
	// cellCount is the number of cells of equal weight, and all the same for bounds.
	cellCount = 8
	all       = float64(cellCount)
	// happens is when the fault occurs, in the middle of a second, of a window and of a
	// look.
	happens = 21*second + second/2
	// given is when a cell without a heartbeat since happens has been given up for sure:
	// 30 s after its last heartbeat, and the look after that.
	given = happens + 32*second
)

// cellScenario is a change or fault of cells.
type cellScenario struct {
	name string
	// bound is the maximum of how many times the limit is admitted, by the rules on the
	// page.
	bound float64
	// lasts means that the run comes near the bound for at least ten seconds.
	lasts bool
	// after is how many times the limit is admitted in the end.
	after float64
	// end is when the run ends, slowest the maximum delay of a message; 0 means the
	// default.
	end, slowest int64
	// weights are the cells' --cells-weight, 1 each if nil.
	weights []int64
	// strangers have never received the list of cells.
	strangers bool
	// before changes the registry, before the cells receive the list of cells.
	before func(r *cellsRun)
	begin  func(r *cellsRun)
}

var cellScenarios = slices.Concat(cellsThatCome, cellsThatDrain, cellsThatAreCutOff, cellsThatAreBack)

// cellsThatCome do not count each other until the list names them. A new weight of a cell
// has no effect on another before that receives it.
var cellsThatCome = []cellScenario{
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
	{name: "seven join one", bound: 1 + (all-1)/2, after: 1, weights: []int64{1}, begin: func(r *cellsRun) {
		r.add(happens, func() {
			for range cellCount - 1 {
				r.join(1)
			}
		})
	}},
	{name: "all start anew; the control plane does so 20 s later", bound: all, lasts: true, after: 1, strangers: true, begin: func(r *cellsRun) {
		r.beginLooking(20 * second)
	}},
	{name: "the weight of one becomes 8; messages take up to 5 s", bound: 1 + 8/(all+7) - 1/all, after: 1, slowest: 5 * second, begin: func(r *cellsRun) {
		r.add(happens, func() { firstWeighs(8)(r) })
	}},
}

// cellsThatDrain, if they still get requests, count in all: the active cells, and each
// other.
var cellsThatDrain = []cellScenario{
	{name: "one dies", bound: 1, lasts: true, after: 1, begin: func(r *cellsRun) {
		r.add(happens, func() { r.cells[0].cut, r.cells[0].idle = true, true })
	}},
	{name: "one drains, and is asked for 20 s more", bound: 1 + 1/all, lasts: true, after: 1, begin: func(r *cellsRun) {
		r.add(happens, func() { r.change(r.cells[0], drains(true)) })
		r.add(happens+20*second, func() { r.cells[0].idle = true })
	}},
	{name: "all but one drain, and are asked still", bound: 1 + (all-1)/all, lasts: true, after: 1 + (all-1)/all, begin: drainAllButOne},
	// The joining cell has half of the limit while the one that was alone has all, and
	// the others drain.
	{name: "the same, and one joins again", bound: 1 + 1/2.0 + (all-2)/all, after: 1 + (all-2)/all, begin: func(r *cellsRun) {
		drainAllButOne(r)
		r.add(happens+40*second, func() { r.change(r.cells[0], drains(false)) })
	}},
}

// cellsThatAreCutOff keep the part that they had last.
var cellsThatAreCutOff = []cellScenario{
	{name: "one is cut off", bound: 1 + 1/all, lasts: true, after: 1 + 1/all, begin: cutOff(1)},
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
	{name: "all but one are cut off", bound: 1 + (all-1)/all, lasts: true, after: 1 + (all-1)/all, begin: cutOff(cellCount - 1)},
	{name: "all but one are cut off, one each 40 s", bound: harmonic(cellCount), lasts: true, after: harmonic(cellCount), end: 360 * second, begin: func(r *cellsRun) {
		for i, c := range r.cells[:cellCount-1] {
			r.add(happens+int64(i)*40*second, func() { c.cut = true })
		}
	}},
}

// cellsThatAreBack, or receive all messages, are given up and count in all cells of the
// list. They are given up, or active again, each at its own time: the first with a larger
// part of fewer.
var cellsThatAreBack = []cellScenario{
	{name: "one is cut off for 60 s", bound: 1 + 1/all, lasts: true, after: 1, begin: cutOffFor(1, 60*second)},
	{name: "one weighs 1, its flag says 8; it is cut off for 60 s", bound: 1 + 1/all, lasts: true, after: 1, weights: firstOf(8), before: firstWeighs(1), begin: cutOffFor(1, 60*second)},
	{name: "one weighs 8, its flag says 1; it is not heard, and hears", bound: 1 + 8/(all+7), lasts: true, after: 1 + 8/(all+7), before: firstWeighs(8), begin: notHeard(1)},
	{name: "half are cut off for 60 s", bound: 1 + harmonic(cellCount) - harmonic(cellCount/2), lasts: true, after: 1, begin: cutOffFor(cellCount/2, 60*second)},
	{name: "half are not heard, and hear", bound: 1 + harmonic(cellCount) - harmonic(cellCount/2), lasts: true, after: 1 + all/2/all, begin: notHeard(cellCount / 2)},
	{name: "all but one are cut off for 60 s, then heard one each 2 s", bound: harmonic(cellCount), after: 1, begin: func(r *cellsRun) {
		cutOffFor(cellCount-1, 60*second)(r)
		for i, c := range r.cells[:cellCount-1] {
			r.add(happens+60*second, func() { c.mute = true })
			r.add(happens+60*second+int64(i)*lookEvery, func() {
				c.mute = false
				r.register(c)
			})
		}
	}},
	{name: "all but one are cut off for 60 s, and forgotten meanwhile", bound: 1 + (all-1)/2, after: 1, begin: func(r *cellsRun) {
		cutOffFor(cellCount-1, 60*second)(r)
		r.add(given, func() {
			for _, c := range r.cells[:cellCount-1] {
				r.forget(c)
			}
		})
	}},
}

// firstOf returns weights of which all but the first are 1.
func firstOf(weight int64) []int64 {
	weights := slices.Repeat([]int64{1}, cellCount)
	weights[0] = weight
	return weights
}

func weighs(weight int64) func(*limits.Cell) { return func(c *limits.Cell) { c.Weight = weight } }

func firstWeighs(weight int64) func(*cellsRun) {
	return func(r *cellsRun) { r.change(r.cells[0], weighs(weight)) }
}

func drains(draining bool) func(*limits.Cell) { return func(c *limits.Cell) { c.Draining = draining } }

// drainAllButOne drains the others, which get requests as before.
func drainAllButOne(r *cellsRun) {
	r.add(happens, func() {
		for _, c := range r.cells[:cellCount-1] {
			r.change(c, drains(true))
		}
	})
}

// notHeard stops the heartbeats of the first cells, which get requests as before.
func notHeard(cells int) func(*cellsRun) {
	return func(r *cellsRun) {
		r.add(happens, func() {
			for _, c := range r.cells[:cells] {
				c.mute = true
			}
		})
	}
}

// harmonic returns 1 + 1/2 + ... + 1/n.
func harmonic(n int) (sum float64) {
	for i := range n {
		sum += 1 / float64(i+1)
	}
	return sum
}

// cutOff cuts the first cells off, which get requests as before.
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
	weights := s.weights
	if weights == nil {
		weights = firstOf(1)
	}
	r := newStrangers(tb, seed, rule, weights)
	if s.before != nil {
		s.before(r)
	}
	if !s.strangers {
		r.introduce()
	}
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
