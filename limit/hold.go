package limit

import (
	"strings"
	"time"
)

// Hold says how a request is held after it was admitted: the store keeps for some time
// what it was charged, so that a Settlement can change that.
type Hold uint8

// The ways to hold a request.
const (
	HoldNone        Hold = iota
	HoldReservation      // its cost is an estimate, and settled when it is known
	HoldSlot             // it has slots of the limits of AlgorithmConcurrency, until it gives them back
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

// Settlement changes what is held of a request.
type Settlement struct {
	Hold       Hold
	Tenant, ID string
	Change     Change
	// Units is what was really used, 0 to MaxCost, of ChangeCommit.
	Units int64
	// For is for how long from now the slots are held, of ChangeRenew; 0 stands for as
	// long as before.
	For time.Duration
}

// Change is what a Settlement changes.
type Change uint8

// The changes. A commit gives back what was estimated too much, to the window in which
// it was charged, or takes what was too little, now: then a bucket may owe as much as it
// holds. A limit with a cost of its own keeps that. A cancel gives back all.
const (
	ChangeCommit Change = iota
	ChangeCancel
	ChangeRelease // gives the slots back; what limits of rates charged stays charged
	ChangeRenew   // holds the slots from now on
)

// String returns the name of the command.
func (c Change) String() string {
	return [...]string{ChangeCommit: "commit", ChangeCancel: "cancel", ChangeRelease: "release", ChangeRenew: "renew"}[c]
}

// Outcome is what became of a Settlement.
type Outcome uint8

// The outcomes, as they are replied.
const (
	OutcomeUnknown Outcome = iota // nothing is held under that id, or not any more
	OutcomeDone
	OutcomeAlready // it was settled before
)

// String returns the word used in metrics.
func (o Outcome) String() string {
	return [...]string{OutcomeUnknown: "unknown", OutcomeDone: "done", OutcomeAlready: "already"}[o]
}

// nothingKept marks the ids of requests of which no store keeps anything.
const nothingKept = 'n'

// HoldID returns the id under which a request that was admitted is settled: an opaque
// word with the tenant in it. Kept says that the store keeps something of it.
func HoldID(req *Request, kept bool) string {
	mark := req.Hold.mark()
	if !kept {
		mark = nothingKept
	}
	b := appendEscaped([]byte{mark, ';'}, req.Tenant)
	return string(appendEscaped(append(b, ';'), req.ID))
}

// ParseHoldID reads what HoldID returned for a request that is held in that way. Kept
// is false for one of which nothing is kept.
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

// Key returns the key of the record of what is held.
func (s Settlement) Key() []byte {
	return appendHoldName([]byte(TenantKey(s.Tenant)), s.Hold, s.ID)
}

// IsHold reports whether a key is that of a record of what a tenant's request holds.
func IsHold(name string) bool {
	return strings.HasPrefix(name, tenantPrefix) && (strings.Contains(name, string(tagEnd)+recordMark+"r;") || strings.Contains(name, string(tagEnd)+recordMark+"a;"))
}

// appendHoldName appends what follows the tag in the key of a record.
func appendHoldName(b []byte, h Hold, id string) []byte {
	b = append(b, recordMark...)
	return appendEscaped(append(b, h.mark(), ';'), id)
}

// Holder returns the name that a call whose answer is kept under a key has among those
// who hold slots: the part of it behind the tag.
func Holder(once []byte) []byte {
	for i, c := range once {
		if c == tagEnd {
			return once[i+1:]
		}
	}
	return once
}
