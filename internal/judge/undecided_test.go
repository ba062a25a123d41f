package judge

import (
	"slices"

	"github.com/limitgate/limitgate/limit"
)

// undecided returns the first step from which on the documentation leaves open what is right,
// or -1.
func undecided(h *history, plain []answer) int {
	sets := make([]*limit.Set, len(h.files))
	for i, f := range h.files {
		set, err := compile(f)
		if err != nil {
			return 0
		}
		sets[i] = set
	}
	held := map[heldID]bool{}
	old := map[string]int{} // ids that were used before the last reset or reload, or settled
	asked := map[string]string{}
	reserved := map[string][]bucket{}
	owed := map[string]int64{} // by buckets, if nothing had come back
	used := map[int]bool{0: true}
	now, changes := 0, map[string]int{} // how often a fixed window's period was changed
	for i := range min(len(h.steps), len(plain)) {
		o := &h.steps[i]
		id := o.tenant + " " + o.id
		if o.kind.pipelined() && o.id != "" {
			if old[id] >= stale || asked[id] != "" && asked[id] != o.words() {
				return i
			}
			old[id], asked[id] = fresh, o.words()
		}
		settles := o.kind == commit || o.kind == cancel || o.kind == release || o.kind == renew
		if settles && old[id] == gone {
			return i
		}
		if o.kind == commit {
			for _, b := range reserved[id] {
				owed[b.name] += max(0, o.units-b.cost)
				if b.params.Algorithm == limit.AlgorithmTokenBucket && owed[b.name] > b.params.Capacity {
					return i
				}
			}
		}
		switch o.kind {
		case release, commit, cancel:
			old[id] = stale
		case reset:
			makeStale(old, gone)
		case reserve, acquire:
			reserved[id] = plain[i].buckets
			id := heldID{o.settlement().Hold, o.tenant, o.id}
			if slices.ContainsFunc(plain[i].buckets, func(b bucket) bool { return b.shared }) {
				if held[id] {
					return i
				}
				held[id] = true
			}
		case reload:
			makeStale(old, stale)
			for before := range used {
				if changedOpenly(sets[before], sets[o.file]) {
					return i
				}
			}
			used[o.file] = true
			for _, id := range changedWindows(sets[now], sets[o.file]) {
				if changes[id]++; changes[id] > 1 { // what counts is bounded, not exact
					return i
				}
			}
			now = o.file
		}
	}
	return -1
}

const (
	fresh = iota + 1
	stale
	gone
)

// words returns the operation without its place in a pipeline.
func (o operation) words() string {
	o.joined = false
	return o.String()
}

func makeStale(ids map[string]int, state int) {
	for id := range ids {
		ids[id] = max(ids[id], state)
	}
}

// changedWindows returns the ids of the limits whose fixed windows are others.
func changedWindows(a, b *limit.Set) (ids []string) {
	fixed := func(l *limit.Limit) bool {
		return l.Params.Algorithm == limit.AlgorithmFixedWindow || l.Params.Algorithm == limit.AlgorithmCalendarWindow
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

// changedOpenly reports whether a limit was changed in a way whose effect is left open.
func changedOpenly(a, b *limit.Set) bool {
	for _, old := range a.All() {
		for _, l := range b.All() {
			if old.ID != l.ID || old.Params.Algorithm != l.Params.Algorithm {
				continue
			}
			switch l.Params.Algorithm {
			case limit.AlgorithmTokenBucket: // a part of a unit is rounded down
				if old.Params.Period > 0 && l.Params.Period%old.Params.Period != 0 {
					return true
				}
			case limit.AlgorithmSlidingWindow, limit.AlgorithmSlidingLog:
				if old.Params.Period != l.Params.Period {
					return true
				}
			}
		}
	}
	return false
}
