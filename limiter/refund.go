package limiter

import (
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
func (l *Limiter) refundDenied(b *Batch) {
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
			reopen(items, held)
		}
	}
	l.refund(b.at, refunds)
	b.pending, b.redecide = b.redecide, b.pending
}

// bucketUse is what earlier requests of the batch did to a bucket.
type bucketUse uint8

const (
	returned  bucketUse = iota + 1 // units were held for a short time
	undecided                      // a request is decided again
)

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
	for i := range call {
		if call[i].Allowed {
			return !deniesEnforced(call)
		}
	}
	return false
}

func mustRedecide(items []limit.Item, held map[string]bucketUse) bool {
	for i := range items {
		it := &items[i]
		use := held[string(it.Name)]
		if use == undecided || use == returned && it.Denies() && it.Enforced() {
			return true
		}
	}
	return false
}

// keepDenials gives the calls of pending requests that the store has not answered again their former answers,
// if these denied: the backstop does not know what the store knew. Former are all items as they were.
func (b *Batch) keepDenials(former []limit.Item) {
	for _, i := range b.pending {
		for _, c := range b.requestCalls(i) {
			was := former[c.First:c.Last]
			if b.buf.Items[c.First].Source == limit.SourceNone && was[0].Source == limit.SourceStore && deniesEnforced(was) {
				copy(b.buf.Items[c.First:c.Last], was)
			}
		}
	}
}

// deniesEnforced reports whether an enforced item of a call denies.
func deniesEnforced(call []limit.Item) bool {
	for i := range call {
		if call[i].Denies() && call[i].Enforced() {
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
			held[string(it.Name)] = max(held[string(it.Name)], returned)
		}
	}
	return refunds
}

// reopen makes items undecided, except those that policy decides.
func reopen(items []limit.Item, held map[string]bucketUse) {
	for i := range items {
		if it := &items[i]; it.Name != nil {
			it.Verdict, it.Source, it.LeaseWanted, it.LeaseGranted = bucket.Verdict{}, limit.SourceNone, 0, 0
			it.Local, it.Retry, it.Replayed, it.Recorded = false, false, false, false
			held[string(it.Name)] = undecided
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
