package limit

import (
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// Buffer holds the items of the requests that are decided together. Its memory is reused
// from batch to batch. Its content is valid until Reset. It is not safe for concurrent
// use.
type Buffer struct {
	Items []Item
	Calls []Call
	names []byte
	// matched are the limits that win their groups for the request being resolved, and
	// those in shadow mode; chosen are the ones that no other limit replaces.
	matched, chosen []*Limit
}

// Reset empties the buffer and keeps its memory.
func (b *Buffer) Reset() {
	b.Items, b.Calls, b.names = b.Items[:0], b.Calls[:0], b.names[:0]
}

// Resolved is the position of one request's items and calls in a Buffer: they are
// Items[FirstItem:LastItem] and Calls[FirstCall:LastCall].
type Resolved struct {
	FirstItem, LastItem int
	FirstCall, LastCall int
}

// Resolve appends to b the items of all limits that apply to req, and the calls that
// decide them: one for the buckets in the tenant's hash slot and one for each bucket
// elsewhere. Limits that deny by themselves become items that are decided already; if an
// enforced one does, there is no call. Addrs hashes addresses. Resolve uses now, in
// microseconds, only for calendar windows.
func (s *Set) Resolve(req *Request, addrs *AddrHasher, now int64, b *Buffer) Resolved {
	if req.Bypass {
		return Resolved{}
	}
	if req.CarriesLimits() {
		return b.bindCarried(req, now)
	}
	b.choose(s.rules(req.Tenant), req)
	r := Resolved{FirstItem: len(b.Items), FirstCall: len(b.Calls)}
	refused := false
	for _, l := range b.chosen {
		if l.Action != ActionDeny && (l.Missing != MissingDeny || l.missing(req) == nil) {
			continue
		}
		b.Items = append(b.Items, Item{Limit: l, Source: SourcePolicy, Verdict: bucket.Verdict{Wait: bucket.Never}})
		refused = refused || l.Mode == ModeEnforce
	}
	decided := len(b.Items)
	if !refused {
		b.bind(req, addrs, now, inTenantSlot)
		tenant := len(b.Items)
		b.bind(req, addrs, now, inOtherSlot)
		other := len(b.Items)
		b.bind(req, addrs, now, inInstance)
		b.addCalls(decided, tenant, other)
		if req.ID != "" {
			b.nameRecords(req, b.Calls[r.FirstCall:])
		}
	}
	r.LastItem, r.LastCall = len(b.Items), len(b.Calls)
	return r
}

// choose fills b.chosen with the limits of rules that apply to req: bans alone, where a limit lifts the others, which still replace bans.
func (b *Buffer) choose(rules *ruleset, req *Request) {
	b.matched = b.matched[:0]
	replaced, lifted := false, rules.lifting(req) != nil
	for i := range rules.groups {
		g := &rules.groups[i]
		if g.slots && req.Hold != HoldSlot || lifted && !g.bans {
			continue
		}
		watching := false
		for _, l := range g.candidates {
			if watching && l.Mode == ModeShadow || !l.applies(req) {
				continue
			}
			if l.Action != ActionAllow {
				b.matched = append(b.matched, l)
			}
			if l.Mode == ModeShadow {
				watching = true // it is evaluated beside the enforced one, once for a group
				continue
			}
			replaced = replaced || len(l.Replaces) > 0
			break
		}
	}
	b.chosen = b.chosen[:0]
	for _, l := range b.matched {
		if (!lifted || l.Action == ActionDeny) && (!replaced || replacedBy(l, b.matched) == nil) {
			b.chosen = append(b.chosen, l)
		}
	}
}

// lifting returns an enforced limit that allows req at every level, or nil.
func (r *ruleset) lifting(req *Request) *Limit {
	for _, l := range r.allowing {
		if l.Mode == ModeEnforce && l.matches(req) {
			return l
		}
	}
	return nil
}

// applies reports whether req matches every condition of l, has its dimensions or l has a rule for
// requests without them, and its bucket is in the share that l enforces, or watches.
func (l *Limit) applies(req *Request) bool {
	return l.matches(req) && (l.Missing != MissingPass || l.missing(req) == nil) && (l.share == 0 || l.inShare(req) == (l.Mode == ModeEnforce))
}

// replacedBy returns the enforced limit among matched that replaces l, or nil. A limit
// that is itself replaced still replaces others.
func replacedBy(l *Limit, matched []*Limit) *Limit {
	for _, other := range matched {
		if other.Mode == ModeEnforce && other != l && slices.Contains(other.Replaces, l.ID) {
			return other
		}
	}
	return nil
}

// The places in which the buckets of one request may be.
const (
	inTenantSlot = iota // together with all of the tenant's
	inOtherSlot         // each in a hash slot of its own
	inInstance          // in this instance, see PlacementLocal
)

func (l *Limit) place() int {
	switch {
	case l.Store == PlacementLocal:
		return inInstance
	case l.byTenant:
		return inTenantSlot
	default:
		return inOtherSlot
	}
}

// bind appends an item for each chosen limit that counts in the given place.
func (b *Buffer) bind(req *Request, addrs *AddrHasher, now int64, place int) {
	for _, l := range b.chosen {
		if l.place() != place || l.Action != ActionLimit || l.Missing == MissingDeny && l.missing(req) != nil {
			continue
		}
		b.bindLimit(l, req, addrs, now)
		// The bucket of the previous secret has what was taken before the rotation, and what
		// proxies without the new secret take.
		if addrs != nil && addrs.previous != nil && l.countsHash(req) {
			b.bindLimit(l, req, addrs.previous, now)
		}
	}
}

// bindLimit appends the item of a limit.
func (b *Buffer) bindLimit(l *Limit, req *Request, addrs *AddrHasher, now int64) {
	begin := len(b.names)
	var keyLen, tagLen int
	b.names, keyLen, tagLen = l.appendName(b.names, req, addrs)
	b.Items = append(b.Items, Item{
		Limit:  l,
		Name:   b.names[begin:len(b.names):len(b.names)],
		KeyLen: keyLen,
		TagLen: tagLen,
		Cost:   l.cost(req),
		Bounds: l.Bounds(now),
	})
}

// addCalls makes one call of the items [first, tenant), one of each item behind them, and
// a local one of each item from local on.
func (b *Buffer) addCalls(first, tenant, local int) {
	if tenant > first {
		b.Calls = append(b.Calls, Call{First: first, Last: tenant})
	}
	for i := tenant; i < len(b.Items); i++ {
		b.Calls = append(b.Calls, Call{First: i, Last: i + 1, Local: i >= local})
	}
}

// FastItem is an Item of the fast path: a limit that counts in the tenant's hash slot, bound to
// its bucket.
type FastItem struct {
	Limit *Limit
	Rest  []byte // the bucket's name behind the tenant's tag
	Cost  int64
	// Bounds are those of calendar windows.
	Bounds *bucket.Bounds
	bucket.Verdict
}

// FastBuffer holds the items of requests on the fast path. Its content is valid until Reset. It is
// not safe for concurrent use.
type FastBuffer struct {
	Items []FastItem
	buf   Buffer
}

// Reset empties the buffer and keeps its memory.
func (b *FastBuffer) Reset() {
	b.Items = b.Items[:0]
	b.buf.Reset()
}

// ResolveFast appends to b the items of all limits that apply to req, as Resolve does, and returns
// them. It returns nil for a request that Resolve has to bind: if it has a record, a limit of its
// own or a tenant whose name is escaped, or if a limit does more than count in the store whole
// units of the tenant, which come back together. Now is in microseconds.
func (s *Set) ResolveFast(req *Request, addrs *AddrHasher, now int64, b *FastBuffer) []FastItem {
	if req.Bypass || req.CarriesLimits() || req.ID != "" || addrs != nil && addrs.previous != nil || needsEscapes(req.Tenant) {
		return nil
	}
	b.buf.choose(s.rules(req.Tenant), req)
	first := len(b.Items)
	for _, l := range b.buf.chosen {
		if !l.takesFastPath() {
			b.Items = b.Items[:first]
			return nil
		}
		begin := len(b.buf.names)
		b.buf.names = l.appendRest(b.buf.names, req, addrs)
		b.Items = append(b.Items, FastItem{Limit: l, Rest: b.buf.names[begin:len(b.buf.names):len(b.buf.names)], Cost: l.cost(req), Bounds: l.Bounds(now)})
	}
	return b.Items[first:]
}

// AddFast appends f, an item of a tenant's request, as an Item that the store has decided.
func (b *Buffer) AddFast(tenant string, f *FastItem) {
	begin := len(b.names)
	b.names = append(append(append(b.names, tenantPrefix...), tenant...), TagEnd)
	it := Item{Limit: f.Limit, TagLen: len(b.names) - begin, Cost: f.Cost, Bounds: f.Bounds, Verdict: f.Verdict, Source: SourceStore}
	b.names = append(b.names, f.Rest...)
	it.Name = b.names[begin:len(b.names):len(b.names)]
	if it.KeyLen = len(it.Name); f.Limit.field {
		it.KeyLen = it.TagLen
	}
	b.Items = append(b.Items, it)
}

// takesFastPath reports whether requests to which l applies may take the fast path.
func (l *Limit) takesFastPath() bool {
	return l.byTenant && l.Action == ActionLimit && l.Mode == ModeEnforce && l.Missing != MissingDeny &&
		l.warn == 0 && l.Store == PlacementShared && !l.Lease.On && !l.Params.Algorithm.ExpiresPerUnit()
}
