package judge

import (
	"slices"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// undecided returns the first step from which on the documentation does not determine the
// right answer, or -1.
func undecided(h *history, plain []answer) int {
	p := past{
		held: map[heldID]bool{}, ids: map[string]int{}, asked: map[string]string{}, reserved: map[string][]seenBucket{},
		owed: map[string]int64{}, used: map[int]bool{0: true}, changes: map[string]int{},
	}
	for _, f := range h.files {
		set, err := compile(f)
		if err != nil {
			return 0
		}
		p.sets = append(p.sets, set)
	}
	for i := range min(len(h.steps), len(plain)) {
		o := &h.steps[i]
		if p.reuses(o) || p.owesTooMuch(o) || p.holdsAgain(o, plain[i].buckets) || o.kind == reload && p.changesOpenly(o.file) {
			return i
		}
		p.settle(o)
	}
	return -1
}

// past is the effect of the steps of a history before the next one.
type past struct {
	sets     []*limit.Set
	held     map[heldID]bool
	ids      map[string]int    // fresh, stale or gone, by tenant and ID
	asked    map[string]string // the words of a request, by tenant and ID
	reserved map[string][]seenBucket
	owed     map[string]int64 // by bucket, without refill
	used     map[int]bool     // files
	file     int              // index of the file in use
	changes  map[string]int   // of the period of a fixed window, by limit
}

func (o *operation) fullID() string { return o.tenant + " " + o.id }

// reuses reports whether a step has the ID of an earlier request that was settled, or
// that had other arguments. It records the step's own ID.
func (p *past) reuses(o *operation) bool {
	id := o.fullID()
	switch {
	case o.kind.pipelined() && o.id != "":
		if p.ids[id] >= stale || p.asked[id] != "" && p.asked[id] != o.words() {
			return true
		}
		p.ids[id], p.asked[id] = fresh, o.words()
	case o.kind == commit || o.kind == cancel || o.kind == release || o.kind == renew:
		return p.ids[id] == gone
	}
	return false
}

// owesTooMuch reports whether a commit may exceed the maximum debt of a token bucket.
func (p *past) owesTooMuch(o *operation) bool {
	if o.kind != commit {
		return false
	}
	for _, b := range p.reserved[o.fullID()] {
		p.owed[b.name] += max(0, o.units-b.cost)
		if b.params.Algorithm == bucket.AlgorithmTokenBucket && p.owed[b.name] > b.params.Capacity {
			return true
		}
	}
	return false
}

// holdsAgain reports whether a request under a shared limit is held twice.
func (p *past) holdsAgain(o *operation, met []seenBucket) bool {
	if o.kind != reserve && o.kind != acquire {
		return false
	}
	p.reserved[o.fullID()] = met
	if !slices.ContainsFunc(met, func(b seenBucket) bool { return b.shared }) {
		return false
	}
	id := heldID{o.settlement().Hold, o.tenant, o.id}
	again := p.held[id]
	p.held[id] = true
	return again
}

// changesOpenly reports whether a file changes limits in a way with undocumented effect.
func (p *past) changesOpenly(file int) bool {
	for before := range p.used {
		if changedOpenly(p.sets[before], p.sets[file]) {
			return true
		}
	}
	for _, id := range changedWindows(p.sets[p.file], p.sets[file]) {
		if p.changes[id]++; p.changes[id] > 1 { // the effect on the counts is bounded, not exact
			return true
		}
	}
	p.used[file], p.file = true, file
	return false
}

// settle records the IDs whose state a step changes.
func (p *past) settle(o *operation) {
	switch o.kind {
	case release, commit, cancel:
		p.ids[o.fullID()] = stale
	case reset:
		makeStale(p.ids, gone)
	case reload:
		makeStale(p.ids, stale)
	}
}

// States of an ID, each older than the one before.
const (
	fresh = iota + 1
	stale
	gone
)

// words returns the operation without its position in a pipeline.
func (o operation) words() string {
	o.joined = false
	return o.String()
}

func makeStale(ids map[string]int, state int) {
	for id := range ids {
		ids[id] = max(ids[id], state)
	}
}

// changedWindows returns the ids of the limits with changed fixed windows.
func changedWindows(a, b *limit.Set) (ids []string) {
	fixed := func(l *limit.Limit) bool {
		return l.Params.Algorithm == bucket.AlgorithmFixedWindow || l.Params.Algorithm == bucket.AlgorithmCalendarWindow
	}
	seen := map[string]bool{}
	for _, old := range a.All() {
		for _, l := range b.All() {
			if old.ID == l.ID && fixed(old) && fixed(l) && (old.Params.Period != l.Params.Period || old.Zone != l.Zone) && !seen[l.ID] {
				seen[l.ID] = true
				ids = append(ids, l.ID)
			}
		}
	}
	return ids
}

// changedOpenly reports whether a limit was changed in a way with undocumented effect.
func changedOpenly(a, b *limit.Set) bool {
	for _, old := range a.All() {
		for _, l := range b.All() {
			if old.ID != l.ID || old.Params.Algorithm != l.Params.Algorithm {
				continue
			}
			switch l.Params.Algorithm {
			case bucket.AlgorithmTokenBucket: // a part of a unit is rounded down
				if old.Params.Period > 0 && l.Params.Period%old.Params.Period != 0 {
					return true
				}
			case bucket.AlgorithmSlidingWindow, bucket.AlgorithmSlidingLog:
				if old.Params.Period != l.Params.Period {
					return true
				}
			}
		}
	}
	return false
}
