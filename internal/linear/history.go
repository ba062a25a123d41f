package linear

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Kind is the kind of a call, or of an event of a store.
type Kind uint8

// The calls, by their commands, and the events of a store: a Failover promotes a replica,
// which may lack the last writes; an Emptied store has lost everything; the clock of a
// SetBack store has stepped back.
const (
	Check Kind = iota
	Peek
	Reserve
	Acquire
	Commit
	Cancel
	Release
	Failover
	Emptied
	SetBack
)

// String returns the name of the command or event.
func (k Kind) String() string {
	return [...]string{"CHECK", "PEEK", "RESERVE", "ACQUIRE", "COMMIT", "CANCEL", "RELEASE", "failover", "emptied", "clock set back"}[k]
}

// IsCall reports whether a client makes a call of this kind; otherwise it is an event.
func (k Kind) IsCall() bool { return k < Failover }

// settles reports whether a call settles an earlier one.
func (k Kind) settles() bool { return k == Commit || k == Cancel || k == Release }

// Call is a call of a client.
type Call struct {
	Kind Kind
	Op   string
	// Units are the cost of a check, the estimate of a reservation, or the units used of a
	// commit. An acquisition costs one unit.
	Units int64
	// ID is the client's own; a check may have none.
	ID string
}

// Answer is a reply of the store. The zero Answer means that there was none: the call may
// have been executed, or be executed later, or never.
type Answer struct {
	Known   bool
	Allowed bool
	// Limit is the id of the limit that bound the decision, and Left its remaining units.
	Limit string
	Left  int64
	// Unrecorded means that the store has no record of the grant, by which it could
	// repeat or settle it.
	Unrecorded bool
	// Outcome is the reply to a settlement: 1 done, 2 already done. 0 is no answer: the
	// store may not have been reached.
	Outcome int64
}

// Operation is a call with its answer.
type Operation struct {
	Client int
	Call
	Answer
	// Sent and Received are in microseconds since the Unix epoch. Received is ignored
	// without an answer.
	Sent, Received int64
}

// acknowledged reports whether a client received an answer that the store has changed
// something.
func (o *Operation) acknowledged() bool {
	return o.Known && (o.Kind.settles() && o.Outcome == 1 || o.Kind != Peek && o.Allowed)
}

// reads reports whether the operation changes nothing.
func (o *Operation) reads() bool {
	return o.Kind == Peek || o.Known && !o.acknowledged() && o.Kind.IsCall()
}

// ends returns when the operation has had its effect at the latest.
func (o *Operation) ends(horizon int64) int64 {
	if o.Known {
		return o.Received
	}
	return horizon
}

// String returns the operation without its times.
func (o *Operation) String() string {
	if !o.Kind.IsCall() {
		return "the store: " + o.Kind.String()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "client %d: %s", o.Client, o.Kind)
	if o.Op != "" {
		fmt.Fprintf(&b, " %s", o.Op)
	}
	if !o.Kind.settles() && o.Kind != Acquire || o.Kind == Commit {
		fmt.Fprintf(&b, " %d", o.Units)
	}
	if o.ID != "" {
		fmt.Fprintf(&b, " ID %s", o.ID)
	}
	switch {
	case !o.Known:
		b.WriteString(" -> no answer of the store")
	case o.Kind.settles():
		fmt.Fprintf(&b, " -> %d", o.Outcome)
	default:
		fmt.Fprintf(&b, " -> %s by %s, %d left", map[bool]string{true: "admitted", false: "denied"}[o.Allowed], o.Limit, o.Left)
		if o.Unrecorded {
			b.WriteString(", not recorded")
		}
	}
	return b.String()
}

// History is the calls and replies of the clients of one tenant.
type History struct {
	Tenant     string
	Plan       Plan
	Operations []Operation
	// SlotsMove means that hash slots changed their owner. Then the store may have no
	// record of a check, by which it could repeat its answer.
	SlotsMove bool
}

// ordered returns the operations that can change or show anything, by the time of
// sending, and the horizon: the time by which those without an answer have had their
// effect, if any.
func (h *History) ordered() (ops []Operation, horizon int64) {
	for _, o := range h.Operations {
		if o.Kind == Peek && !o.Known {
			continue
		}
		ops = append(ops, o)
		horizon = max(horizon, o.Sent+1, o.Received+1)
	}
	slices.SortStableFunc(ops, func(x, y Operation) int { return cmp.Compare(x.Sent, y.Sent) })
	return ops, horizon
}

// has reports whether there is an operation of a kind.
func (h *History) has(k Kind) bool {
	return slices.ContainsFunc(h.Operations, func(o Operation) bool { return o.Kind == k })
}
