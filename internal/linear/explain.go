package linear

import "slices"

// Explanation shows why a history has no order.
type Explanation struct {
	// Stuck is the operation whose answer no order explains, together with those before.
	Stuck Operation
	// Before are the operations that led to States, which are all states that were
	// possible when the operations of Smallest were about to be sent.
	Before []Operation
	States []string
	// Smallest are the operations that have no order from any of those states. No
	// operation can be left out without changing the states that the others can find.
	Smallest []Operation
	// Unanswered is the number of earlier calls without an answer that do not help,
	// whether they are executed or not.
	Unanswered int
}

// Explain shows why FindOrder found no order in a history. It fails if that would take
// too much memory.
func Explain(h *History) (e Explanation, ok bool) {
	ops, horizon := h.ordered()
	if len(ops) == 0 {
		return e, false
	}
	excuses := h.excuses()
	most := excuses[len(excuses)-1]
	w := &walk{m: h.model(ops[0].Sent, horizon, most)}
	w.now = []situation{{state: w.m.first()}}
	all := moments(ops)
	from, states := 0, w.now
	stuck := w.run(all, func(at int) { from, states = at, w.now })
	if stuck == nil {
		return e, false
	}
	e.Stuck = *stuck
	for i := range ops {
		switch o := &ops[i]; {
		case o.Sent > stuck.Received:
		case slices.ContainsFunc(all[:from], func(x moment) bool { return x.op == o }):
			e.Before = append(e.Before, *o)
			e.Unanswered += boolToInt(!o.Known)
		case o == stuck || o.Known && o.Received <= stuck.Received:
			e.Smallest = append(e.Smallest, *o)
		default: // its answer arrives later, and makes no difference yet
			o.Answer = Answer{}
			e.Smallest = append(e.Smallest, *o)
		}
	}
	e.Smallest = smallest(w.m, states, e.Smallest)
	for _, x := range unique(statesOf(states), most.lost) {
		e.States = append(e.States, x.describe(h.Plan, w.m.begin))
	}
	return e, true
}

func statesOf(all []situation) []*state {
	var s []*state
	for _, x := range all {
		s = append(s, x.state)
	}
	return s
}

// smallest leaves out operations as long as the others have no order from any of the
// states: operations that change nothing, and calls without an answer. Leaving out any
// other would change the states that the others can find.
func smallest(m *model, from []situation, ops []Operation) []Operation {
	stuck := func(ops []Operation) bool {
		w := &walk{m: m}
		for _, x := range from {
			w.now = append(w.now, situation{state: x.state})
		}
		return w.run(moments(ops), func(int) {}) != nil
	}
	for _, pass := range []func(o *Operation) bool{(*Operation).reads, func(o *Operation) bool { return !o.Known }} {
		for i := len(ops) - 1; i >= 0; i-- {
			if rest := slices.Delete(slices.Clone(ops), i, i+1); pass(&ops[i]) && stuck(rest) {
				ops = rest
			}
		}
	}
	return ops
}
