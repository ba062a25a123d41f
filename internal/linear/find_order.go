package linear

import (
	"time"

	"github.com/anishathalye/porcupine"
)

// Verdict is the result of a check of a history.
type Verdict uint8

// The verdicts. Undecided means that the check took too long.
const (
	Explained Verdict = iota
	Unexplained
	Undecided
)

// Result is the result of a check of a history, with the losses found.
type Result struct {
	Verdict Verdict
	// Lost is how many acknowledged changes the history lost: in a failover the fewest
	// with which there is an order, in a store that was emptied all those before.
	Lost int
	// Forgot reports that there is an order only if the store recorded nothing of a check
	// while hash slots moved.
	Forgot bool
}

// MostLost is the maximum number of acknowledged changes of one tenant that a failover
// may lose: the changes not yet replicated, which are those of the last milliseconds.
const MostLost = 8

// FindOrder searches for an order of whole decisions that explains a history, first for
// one in which nothing was lost. Porcupine, which searches for it, is fast if there is an
// order. If it takes longer than the timeout, a walk through the history follows, which
// is fast if there is none. The result that there is no order requires both to find none,
// if they can.
func FindOrder(h *History, timeout time.Duration) Result {
	ops, horizon := h.ordered()
	if len(ops) == 0 {
		return Result{}
	}
	verdict := Unexplained
	excuses := h.excuses()
	for i, x := range excuses {
		last := i == len(excuses)-1
		switch h.model(ops[0].Sent, horizon, x).search(ops, timeout, last) {
		case Explained:
			return Result{Explained, x.lost + h.emptied(), x.forgot}
		case Undecided:
			verdict = Undecided
		}
	}
	return Result{Verdict: verdict}
}

// search searches for an order by a model. Unless last is set, it is sufficient that one
// of the two searches finds that there is none.
func (m *model) search(ops []Operation, timeout time.Duration, last bool) Verdict {
	searched := Undecided
	switch porcupine.CheckOperationsTimeout(m.porcupine(), m.operations(ops), timeout) {
	case porcupine.Ok:
		return Explained
	case porcupine.Illegal:
		searched = Unexplained
	}
	if searched == Unexplained && !last {
		return searched
	}
	w := &walk{m: m, now: []situation{{state: m.first()}}}
	switch stuck := w.run(moments(ops), func(int) {}); {
	case w.full:
		return searched
	case stuck != nil:
		return Unexplained
	case searched == Unexplained: // one of the two is wrong
		return Undecided
	}
	return Explained
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// excuse is a fault that a history may need to have an order.
type excuse struct {
	lost   int
	forgot bool
}

// excuses returns the possible excuses of a history, the smallest first.
func (h *History) excuses() []excuse {
	var all []excuse
	for lost := 0; lost == 0 || h.has(Failover) && lost <= MostLost; lost++ {
		all = append(all, excuse{lost: lost})
		if h.SlotsMove {
			all = append(all, excuse{lost, true})
		}
	}
	return all
}

// emptied returns how many changes were acknowledged before the store was emptied.
func (h *History) emptied() int {
	n := 0
	for i := range h.Operations {
		if h.Operations[i].Kind != Emptied {
			continue
		}
		for j := range h.Operations {
			if o := &h.Operations[j]; o.acknowledged() && o.Received < h.Operations[i].Sent {
				n++
			}
		}
	}
	return n
}

// operations returns the operations in porcupine's form.
func (m *model) operations(ops []Operation) []porcupine.Operation {
	asked := make([]porcupine.Operation, len(ops))
	for i := range ops {
		o := &ops[i]
		asked[i] = porcupine.Operation{ClientId: o.Client, Input: o, Call: o.Sent - m.begin, Return: o.ends(m.horizon) - m.begin}
	}
	return asked
}

// porcupine returns the model in porcupine's form: its states are sets of possible
// states.
func (m *model) porcupine() porcupine.Model {
	n := porcupine.NondeterministicModel{
		Init: func() []any { return []any{m.first()} },
		Step: func(s, o, _ any) []any {
			var next []any
			for _, n := range m.step(s.(*state), o.(*Operation)) {
				next = append(next, n)
			}
			return next
		},
		Equal:             func(x, y any) bool { return same(x.(*state), y.(*state), m.budget) },
		Hash:              func(s any) uint64 { return s.(*state).hash() },
		DescribeOperation: func(o, _ any) string { return o.(*Operation).String() },
		DescribeState:     func(s any) string { return s.(*state).describe(m.plan, m.begin) },
	}
	return n.ToModel()
}
