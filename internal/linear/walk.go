package linear

import (
	"cmp"
	"slices"
)

// maxSituations is the maximum number of situations that a walk holds at a time.
const maxSituations = 100_000

// maxPending is the maximum number of concurrent operations.
const maxPending = 64

// situation is a state, and which of the pending operations have had their effect in it:
// a bit for each, by index.
type situation struct {
	state *state
	done  uint64
}

// walk iterates over a history in the order of its calls and replies, with all possible
// situations.
type walk struct {
	m       *model
	pending []*Operation // by index; nil if it is free
	now     []situation
	size    int  // number of situations examined for the last reply
	full    bool // there are more situations or operations than the maximum
}

// moment is a call or a reply.
type moment struct {
	at    int64
	reply bool
	op    *Operation
}

// moments returns the calls and replies of operations in order; a call comes before a
// reply of the same time, as in porcupine. An operation without an answer has no reply.
func moments(ops []Operation) []moment {
	var all []moment
	for i := range ops {
		all = append(all, moment{ops[i].Sent, false, &ops[i]})
		if ops[i].Known {
			all = append(all, moment{ops[i].Received, true, &ops[i]})
		}
	}
	slices.SortStableFunc(all, func(x, y moment) int {
		return cmp.Or(cmp.Compare(x.at, y.at), boolToInt(x.reply)-boolToInt(y.reply))
	})
	return all
}

// run continues until an operation cannot be explained, which it returns, or to the end.
// It calls quiet before a call while no call with an answer is pending.
func (w *walk) run(all []moment, quiet func(at int)) *Operation {
	answers := 0
	for i, x := range all {
		switch {
		case !x.reply:
			if answers == 0 {
				quiet(i)
			}
			answers += boolToInt(x.op.Known)
			w.send(x.op)
		case !w.receive(x.op):
			return x.op
		default:
			answers--
		}
		if w.full {
			return nil
		}
	}
	return nil
}

// send adds a pending operation.
func (w *walk) send(o *Operation) {
	for i := range w.pending {
		if w.pending[i] == nil {
			w.pending[i] = o
			return
		}
	}
	w.pending = append(w.pending, o)
	w.full = w.full || len(w.pending) > maxPending
}

// receive keeps the situations in which an operation can have had its answer by now, and
// reports whether there are any.
func (w *walk) receive(o *Operation) bool {
	place := slices.Index(w.pending, o)
	bit := uint64(1) << place
	seen := map[uint64][]situation{}
	var after []situation
	w.size = 0
	var visit func(x situation)
	visit = func(x situation) {
		key := x.state.hash() ^ x.done*0x9E3779B97F4A7C15
		known := func(y situation) bool { return y.done == x.done && same(y.state, x.state, w.m.budget) }
		if w.full || slices.ContainsFunc(seen[key], known) {
			return
		}
		seen[key] = append(seen[key], x)
		w.size++
		w.full = w.full || w.size > maxSituations
		if x.done&bit != 0 {
			x.done &^= bit
			after = append(after, x)
			return
		}
		for i, p := range w.pending {
			if p == nil || x.done>>i&1 != 0 {
				continue
			}
			was := w.m.outlived(x.state, p.Sent)
			for _, next := range w.m.step(was, p) {
				if p.Known || next != was { // an operation without an effect here is never executed
					visit(situation{next, x.done | 1<<i})
				}
			}
		}
	}
	for _, x := range w.now {
		visit(x)
	}
	w.now, w.pending[place] = after, nil
	return len(after) > 0 || w.full
}
