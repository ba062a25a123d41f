package limit

import (
	"strings"
	"time"
)

// Hold is how a request is held after it was admitted: for some time the store has a
// record of its charge, which a Settlement can change.
type Hold uint8

// The ways to hold a request.
const (
	HoldNone        Hold = iota
	HoldReservation      // its cost is an estimate, and settled when the real cost is known
	HoldSlot             // it has slots of the limits of AlgorithmConcurrency, until it releases them
)

// Bounds on how long a request is held.
const (
	MinHold     = time.Millisecond
	MaxHold     = time.Hour
	DefaultHold = time.Minute
)

// mark is the letter of a hold in names.
func (h Hold) mark() byte {
	if h == HoldSlot {
		return 'a'
	}
	return 'r'
}

// Settlement changes the record of a request that is held.
type Settlement struct {
	Hold       Hold
	Tenant, ID string
	Change     Change
	// Units is the real cost, 0 to MaxCost, of ChangeCommit.
	Units int64
	// For is for how long from now the slots are held, of ChangeRenew; 0 means as long as
	// before.
	For time.Duration
}

// Change is the kind of a Settlement.
type Change uint8

// The changes. A commit refunds the units that the estimate had too many, to the window
// in which they were charged, or takes the missing ones now. A bucket may get as far into
// debt as its capacity. A limit with a cost of its own keeps that cost. A cancel refunds
// all units.
const (
	ChangeCommit Change = iota
	ChangeCancel
	ChangeRelease // returns the slots; units that rate limits charged stay charged
	ChangeRenew   // extends the slots from now on
)

// String returns the name of the command.
func (c Change) String() string {
	return [...]string{ChangeCommit: "commit", ChangeCancel: "cancel", ChangeRelease: "release", ChangeRenew: "renew"}[c]
}

// Outcome is the result of a Settlement.
type Outcome uint8

// The outcomes, as they are replied.
const (
	OutcomeUnknown Outcome = iota // there is no record under that id, or not any more
	OutcomeDone
	OutcomeAlready // it was settled before
)

// String returns the word used in metrics.
func (o Outcome) String() string {
	return [...]string{OutcomeUnknown: "unknown", OutcomeDone: "done", OutcomeAlready: "already"}[o]
}

// nothingKept marks the ids of requests without a record in any store.
const nothingKept = 'n'

// HoldID returns the id under which a request that was admitted is settled: an opaque
// word that contains the tenant. Kept reports that the store has a record of it.
func HoldID(req *Request, kept bool) string {
	mark := req.Hold.mark()
	if !kept {
		mark = nothingKept
	}
	b := appendEscaped([]byte{mark, ';'}, req.Tenant)
	return string(appendEscaped(append(b, ';'), req.ID))
}

// ParseHoldID parses the result of HoldID for a request that is held in the way h. Kept
// is false for a request without a record.
func ParseHoldID(word string, h Hold) (tenant, id string, kept, ok bool) {
	parts := strings.Split(word, ";")
	if len(parts) != 3 || len(parts[0]) != 1 || parts[0][0] != h.mark() && parts[0][0] != nothingKept {
		return "", "", false, false
	}
	tenant, id = unescape(parts[1]), unescape(parts[2])
	return tenant, id, parts[0][0] != nothingKept, CheckName(tenant) == nil && CheckName(id) == nil
}

// unescaper undoes appendEscaped.
var unescaper = strings.NewReplacer("%25", "%", "%7B", "{", "%7D", "}", "%3B", ";")

func unescape(s string) string { return unescaper.Replace(s) }

// Key returns the record key of the request that is settled.
func (s Settlement) Key() []byte {
	return appendHoldName([]byte(TenantKey(s.Tenant)), s.Hold, s.ID)
}

// IsHold reports whether name is the record key of a tenant's request that is held.
func IsHold(name string) bool {
	return strings.HasPrefix(name, tenantPrefix) && (strings.Contains(name, string(TagEnd)+recordMark+"r;") || strings.Contains(name, string(TagEnd)+recordMark+"a;"))
}

// appendHoldName appends what follows the tag in the key of a record.
func appendHoldName(b []byte, h Hold, id string) []byte {
	b = append(b, recordMark...)
	return appendEscaped(append(b, h.mark(), ';'), id)
}

// Holder returns the name of a call with a record key among the holders of slots: the
// part of the key behind the tag.
func Holder(once []byte) []byte {
	for i, c := range once {
		if c == TagEnd {
			return once[i+1:]
		}
	}
	return once
}
