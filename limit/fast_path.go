package limit

import "github.com/limitgate/limitgate/limit/bucket"

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

// MergeFast makes d the decision from a request's items, as Merge does.
func MergeFast(items []FastItem, d *Decision) {
	n := 0
	for i := 1; i < len(items); i++ {
		a, b := &items[i], &items[n]
		if binds(a.Limit, &a.Verdict, b.Limit, &b.Verdict) {
			n = i
		}
	}
	d.Source = SourceStore
	d.decidedBy(items[n].Limit, &items[n].Verdict, n)
}
