package limit

import (
	"math/bits"
	"time"

	"github.com/limitgate/limitgate/limit/bucket"
)

// Source is the part that decided.
type Source uint8

// The sources of a decision.
const (
	SourceNone     Source = iota // not decided yet
	SourceStore                  // the store
	SourceLease                  // units that this proxy held on lease
	SourceCache                  // a denial in its deny cache
	SourceBackstop               // this instance's share, because the store is unavailable
	SourcePolicy                 // no limit matched, a ban, or a limit that fails closed
	// NumSources is the number of sources, for tables indexed by them.
	NumSources
)

// String returns the word used in replies and metrics.
func (s Source) String() string {
	switch s {
	case SourceStore:
		return "store"
	case SourceLease:
		return "lease"
	case SourceCache:
		return "cache"
	case SourceBackstop:
		return "backstop"
	case SourcePolicy:
		return "policy"
	default:
		return "none"
	}
}

// Item is one limit bound to one bucket for one request. The stages of a decision fill in
// its verdict and source.
type Item struct {
	Limit  *Limit
	Name   []byte         // the bucket's name
	KeyLen int            // Name[:KeyLen] is its key in Redis, the rest a field of the string there
	TagLen int            // Name[:TagLen] is the same for all buckets that are decided together
	Cost   int64          // units
	Bounds *bucket.Bounds // of calendar windows
	// LeaseWanted is how many more checks like this one the call may take in advance for
	// a lease, and LeaseGranted how many of them it took. All items of a call have the
	// same values.
	LeaseWanted, LeaseGranted int64
	// Retry reports that the store must be called again for the call that begins with the
	// item: the store has neither decided it nor tried to.
	Retry bool
	// RecordKey is the record key of the call of an item that is refunded: the record is
	// void then. It is nil if there is none.
	RecordKey []byte
	// Replayed reports that the store returned a recorded answer: the call took nothing.
	// Recorded reports that the store has a record of the answer if it granted the call.
	Replayed, Recorded bool
	// Local reports that this instance's share decided, not the store.
	Local bool
	// Capped reports that no limit of the call denies, and that the bound of all tenants together does, which the
	// backstop has: the call holds no units, and the verdict of an enforced limit is a denial with the wait of the
	// bound.
	Capped bool

	bucket.Verdict
	Source Source // SourceNone until the item is decided
	// State is the bucket of an item that the store denied, and At the store's time of
	// it, in microseconds since the epoch.
	State bucket.State
	At    int64
}

// Enforced reports whether the item's verdict counts for the decision.
func (it *Item) Enforced() bool { return it.Limit.Mode == ModeEnforce }

// Denies reports whether the item is decided and denies the request.
func (it *Item) Denies() bool { return it.Source != SourceNone && !it.Allowed }

// Refused reports that the limit denies the request without a bucket: it is a ban, or the request lacks a
// dimension and the limit says missing: deny.
func (it *Item) Refused() bool { return it.Source == SourcePolicy && it.Wait == bucket.Never }

// Own returns the verdict of the limit by itself, without the bound of all tenants together.
func (it *Item) Own() bucket.Verdict {
	v := it.Verdict
	if it.Capped && it.Enforced() {
		v.Allowed, v.Wait = true, 0
	}
	return v
}

// Call is a run of items, Items[First:Last] of a Buffer, that are decided together, all
// or nothing: their buckets are in one hash slot.
type Call struct {
	First, Last int
	// Local reports that each instance decides the call by its share, without the store.
	Local bool
	// RecordKey, unless nil, is the key under which the store records for RecordTTL that
	// it granted the call, to replay the answer to an equal one. The key is in the hash
	// slot of the buckets. Hold is set if the record can be settled.
	RecordKey []byte
	RecordTTL time.Duration
	Hold      Hold
}

// HashSlot returns the hash slot of the item's bucket.
func (it *Item) HashSlot() uint16 { return HashSlot(it.Name[:it.KeyLen]) }

// Decision is the answer to one request.
type Decision struct {
	Allowed    bool
	Limit      int64  // capacity of the binding limit; -1 without one
	Remaining  int64  // units left in it, never negative; -1 without one
	RetryAfter int64  // ms; 0 when allowed; Never when it can never succeed
	ResetAfter int64  // ms until it is full again
	Binding    *Limit // nil when no limit matched, or by Unbind
	Source     Source
	Refused    bool // the binding limit denies the request without a bucket: see Item.Refused
	Capped     bool // the binding limit admits, and the bound of all tenants together denies: see Item.Capped
	Item       int  // the binding item's index among the request's items; -1 when no limit matched
}

// LimitID returns the id of the binding limit, or "" without one.
func (d *Decision) LimitID() string {
	if d.Binding == nil {
		return ""
	}
	return d.Binding.ID
}

// LacksDimension reports that the binding limit denies the request since this lacks a dimension, by missing:
// deny.
func (d *Decision) LacksDimension() bool { return d.Refused && d.Binding.Action == ActionLimit }

// Merge makes the decision from a request's items: all enforced ones must admit. If they
// do, the one with the smallest part of its capacity left binds, else the denying one
// with the longest wait. Ties go to the first by Limit.Order. RetryAfter is the true
// wait, without jitter.
func Merge(items []Item) Decision {
	d := Decision{Allowed: true, Limit: -1, Remaining: -1, Source: SourcePolicy, Item: -1}
	degraded, refused := false, false
	for i := range items {
		it := &items[i]
		if !it.Enforced() || it.Source == SourceNone {
			continue // an item stays undecided only when another one denies
		}
		degraded = degraded || it.Source == SourceBackstop
		refused = refused || it.Source == SourcePolicy && !it.Allowed
		if d.Item < 0 || binds(it.Limit, &it.Verdict, items[d.Item].Limit, &items[d.Item].Verdict) {
			d.Item = i
		}
	}
	if d.Item < 0 {
		return d
	}
	it := &items[d.Item]
	d.decidedBy(it.Limit, &it.Verdict, d.Item)
	d.Source, d.Refused, d.Capped = it.Source, it.Refused(), it.Capped
	switch {
	case refused:
		d.Source = SourcePolicy
	case degraded:
		d.Source = SourceBackstop
	}
	return d
}

// MergeFast makes d the decision from a request's items, as Merge does.
func MergeFast(items []FastItem, d *Decision) {
	n := 0
	for i := 1; i < len(items); i++ {
		a, b := &items[i], &items[n]
		if binds(a.Limit, &a.Verdict, b.Limit, &b.Verdict) {
			n = i
		}
	}
	d.Source, d.Refused, d.Capped = SourceStore, false, false
	d.decidedBy(items[n].Limit, &items[n].Verdict, n)
}

// Unbind makes a capped decision one without a binding limit, as no limit denies the request.
func (d *Decision) Unbind() {
	if d.Capped {
		d.Binding, d.Limit, d.Remaining, d.ResetAfter = nil, -1, -1, 0
	}
}

// decidedBy sets the fields that the limit of the binding item and its verdict have.
func (d *Decision) decidedBy(l *Limit, v *bucket.Verdict, item int) {
	d.Allowed, d.Binding, d.Item = v.Allowed, l, item
	d.Limit, d.Remaining = l.Params.Capacity, v.Remaining
	d.RetryAfter, d.ResetAfter = v.Wait, v.Reset
}

// Alone returns the decision that the limit of an id makes by itself, whatever its mode, from a
// request's items. Where it has several buckets, all must admit. Ok is false if none of its buckets
// is decided.
func Alone(items []Item, id string) (d Decision, ok bool) {
	var v bucket.Verdict // of items[d.Item]
	d.Item = -1
	for i := range items {
		it := &items[i]
		if it.Limit.ID != id || it.Limit.Action != ActionLimit || it.Source == SourceNone {
			continue
		}
		own := it.Own()
		if d.Item < 0 || binds(it.Limit, &own, items[d.Item].Limit, &v) {
			d.Item, v = i, own
		}
	}
	if d.Item < 0 {
		return d, false
	}
	it := &items[d.Item]
	d.Source, d.Refused = it.Source, it.Refused()
	d.decidedBy(it.Limit, &v, d.Item)
	return d, true
}

// binds reports whether the verdict a of limit la binds rather than b of lb.
func binds(la *Limit, a *bucket.Verdict, lb *Limit, b *bucket.Verdict) bool {
	if a.Allowed != b.Allowed {
		return b.Allowed
	}
	var order int
	if a.Allowed {
		// a.Remaining/a.capacity against b.Remaining/b.capacity
		ahi, alo := bits.Mul64(uint64(a.Remaining), uint64(lb.Params.Capacity))
		bhi, blo := bits.Mul64(uint64(b.Remaining), uint64(la.Params.Capacity))
		order = compareUint128(ahi, alo, bhi, blo)
	} else {
		order = compareWait(b.Wait, a.Wait)
	}
	return order < 0 || order == 0 && la.Order < lb.Order
}

func compareUint128(ahi, alo, bhi, blo uint64) int {
	switch {
	case ahi < bhi, ahi == bhi && alo < blo:
		return -1
	case ahi == bhi && alo == blo:
		return 0
	default:
		return 1
	}
}

// compareWait orders waits; Never is the longest.
func compareWait(a, b int64) int {
	switch {
	case a == b:
		return 0
	case a == bucket.Never:
		return 1
	case b == bucket.Never, a < b:
		return -1
	default:
		return 1
	}
}
