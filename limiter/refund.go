package limiter

import (
	"slices"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

// refundDenied refunds the units that denied requests were granted in other hash slots,
// and leaves those requests pending that have to be decided again.
//
// A batch is decided as if one request came after the other. A denied request must
// therefore not affect a later one. If it held units of a bucket for a short time, and a
// later request was denied there, the later one is decided again, and so is every request
// behind it that shares a bucket with it. The first pending request is always final, so
// this ends. Only the reported remaining units of a bucket may be too low, by the units
// held for that time.
//
// It returns the calls of pending requests that are denied in any case, because nothing
// returns to a bucket that denied them.
func (l *Limiter) refundDenied(b *Batch) (denied []deniedCall) {
	b.redecide = b.redecide[:0]
	late := !l.opts.Now().Before(b.at.Deadline())
	held := map[string]bucketUse{}
	var refunds []limit.Item
	for _, i := range b.pending {
		items := b.Items(i)
		again := !late && b.Decisions[i].Source != limit.SourceCache && mustRedecide(items, held)
		if b.Decisions[i].Allowed && !again {
			continue
		}
		for _, c := range b.requestCalls(i) {
			if call := b.buf.Items[c.First:c.Last]; granted(call) {
				refunds = appendRefunds(refunds, call, c.RecordKey, held)
			}
		}
		if again {
			b.redecide = append(b.redecide, i)
			for _, c := range b.requestCalls(i) {
				if call := b.buf.Items[c.First:c.Last]; deniedInAnyCase(call, held) {
					denied = append(denied, deniedCall{c.First, slices.Clone(call)})
				}
			}
			reopen(items, held)
		}
	}
	l.refund(b.at, refunds)
	b.pending, b.redecide = b.redecide, b.pending
	return denied
}

// bucketUse is a set of what earlier requests of the batch did to a bucket.
type bucketUse uint8

const (
	returned  bucketUse = 1 << iota // units were held for a short time
	undecided                       // a request is decided again
)

// deniedCall is the answer of the store to a call that is decided again.
type deniedCall struct {
	first int // item of the batch
	items []limit.Item
}

// deniedInAnyCase reports whether the store denies a call because of a bucket to which
// nothing returns.
func deniedInAnyCase(call []limit.Item, held map[string]bucketUse) bool {
	for i := range call {
		if it := &call[i]; it.Source == limit.SourceStore && it.Denies() && it.Enforced() && held[string(it.Name)]&returned == 0 {
			return true
		}
	}
	return false
}

// keepDenials restores the denials of calls that the store has not answered again: the
// backstop does not know what the store knew.
func (b *Batch) keepDenials(denied []deniedCall) {
	for _, d := range denied {
		if items := b.buf.Items[d.first:]; items[0].Source == limit.SourceNone {
			copy(items, d.items)
		}
	}
}

// anyGrantDenied reports whether a denied request holds units of any bucket.
func (b *Batch) anyGrantDenied() bool {
	for _, i := range b.pending {
		if b.Decisions[i].Allowed {
			continue
		}
		for _, c := range b.requestCalls(i) {
			if granted(b.buf.Items[c.First:c.Last]) {
				return true
			}
		}
	}
	return false
}

// granted reports whether a call took units, or replayed a recorded answer that counts
// its callers: none of its enforced items denies.
func granted(call []limit.Item) bool {
	taken := false
	for i := range call {
		if call[i].Denies() && call[i].Enforced() || call[i].Capped {
			return false
		}
		taken = taken || call[i].Allowed
	}
	return taken
}

func mustRedecide(items []limit.Item, held map[string]bucketUse) bool {
	for i := range items {
		it := &items[i]
		use := held[string(it.Name)]
		if use&undecided != 0 || use != 0 && it.Denies() && it.Enforced() {
			return true
		}
	}
	return false
}

func appendRefunds(refunds, call []limit.Item, once []byte, held map[string]bucketUse) []limit.Item {
	for i := range call {
		if it := &call[i]; it.Allowed {
			refunds = append(refunds, *it)
			last := &refunds[len(refunds)-1]
			last.LeaseWanted, last.LeaseGranted = 0, 0 // units on lease belong to the lease
			if last.RecordKey = once; it.Source == limit.SourceStore && !it.Recorded {
				last.RecordKey = nil // the store has no record of the grant
			}
			held[string(it.Name)] |= returned
		}
	}
	return refunds
}

// reopen makes items undecided, except those that policy decides.
func reopen(items []limit.Item, held map[string]bucketUse) {
	for i := range items {
		if it := &items[i]; it.Name != nil {
			it.Verdict, it.Source, it.LeaseWanted, it.LeaseGranted = bucket.Verdict{}, limit.SourceNone, 0, 0
			it.Local, it.Capped, it.Retry, it.Replayed, it.Recorded = false, false, false, false, false
			held[string(it.Name)] |= undecided
		}
	}
}

// refund returns the units of items to the part that granted them.
func (l *Limiter) refund(at limit.DecisionTime, items []limit.Item) {
	var store, backstop []limit.Item
	for _, it := range items {
		switch {
		case it.Source == limit.SourceBackstop || it.Local:
			backstop = append(backstop, it)
		case it.Source != limit.SourceLease || !l.leases.returnUnits(&it):
			store = append(store, it)
		case l.deny != nil: // the lease has the units again, so that this proxy can admit requests
			l.deny.dropReturned([]limit.Item{it}, l.instant(l.opts.Now()))
		}
	}
	if len(store) > 0 {
		l.opts.Store.Refund(at, store)
		if l.deny != nil {
			l.deny.dropReturned(store, l.instant(l.opts.Now()))
		}
	}
	if len(backstop) > 0 {
		l.opts.Backstop.Refund(backstop)
	}
}
