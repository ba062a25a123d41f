package judge

import (
	"math/rand/v2"
	"testing"
	"time"
)

// lab is a set of stores on which histories run, one history after the other.
type lab struct {
	single, cluster *servers
}

func newLab(tb testing.TB) *lab {
	tb.Helper()
	return &lab{startServers(tb, 1), startServers(tb, 3)}
}

// run is a store with a way of calling it.
type run struct {
	store  string
	engine *limiterEngine
}

func (r run) String() string { return r.store + ", " + r.engine.way.String() }

// answers runs a history.
func (r run) answers(h *history) []answer { return r.engine.run(h) }

// stores returns the runs of all stores in their ways.
func (l *lab) stores(memory, single, cluster way) []run {
	return []run{
		{"memory", memoryEngine(memory)},
		{"redis", l.single.engine(single)},
		{"cluster", l.cluster.engine(cluster)},
	}
}

// inMemory returns the runs of the memory store that decide one request after the other.
func inMemory() []run {
	return []run{{"memory", memoryEngine(plain)}, {"memory", memoryEngine(way{batch: 1, fast: true})}}
}

// draw draws a way for each store.
func (l *lab) draw(r *rand.Rand) []run {
	some := func() way {
		return way{cache: chance(r, 3), batch: one(r, []int{1, 2, 8, 64}), begin: chance(r, 2)}
	}
	return append(inMemory(), l.stores(some(), some(), some())...)
}

// every returns all stores in all ways with different code paths.
func (l *lab) every() []run {
	all := inMemory()
	for _, batch := range []int{1, 2, 64} {
		for _, cache := range []bool{false, true} {
			w := way{cache: cache, batch: batch}
			all = append(all, l.stores(w, w, w)...)
			w.begin = true
			all = append(all, l.stores(w, w, w)...)
		}
	}
	return all
}

// truth returns the answers of the reference, with the buckets that the memory store saw
// in the plain way.
func truth(h *history) []answer {
	return withBuckets(referenceEngine{}.run(h), memoryEngine(plain).run(h))
}

func withBuckets(answers, plain []answer) []answer {
	for i := range min(len(plain), len(answers)) {
		answers[i].buckets = plain[i].buckets
	}
	return answers
}

// smallest returns the smallest history found for which a run's answer is wrong, and
// false if the run's answer to the given one is not wrong again.
func smallest(d *drawn, r run, within time.Duration) (small *history, repeats bool) {
	r.engine.patience = time.Second
	wrong := func(h *history) bool {
		want := truth(h)
		return undecided(h, want) < 0 && compare(h, want, r.answers(h), r.engine.way) != nil
	}
	if !wrong(&d.history) {
		return &d.history, false
	}
	return shrink(d, within, wrong), true
}
