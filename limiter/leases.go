package limiter

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limit/bucket"
)

const (
	// leaseShards is how many locks the leases are spread over.
	leaseShards = 64
	// maxLeases bounds the leases; the store decides requests to further buckets. At some
	// 300 bytes each this is 20 MB.
	maxLeases = 1 << 16
	// leaseSweep is how often the units of expired leases are returned.
	leaseSweep = 100 * time.Millisecond
	// leaseAhead is how long an automatic lease is meant to last, in microseconds.
	leaseAhead = 100_000
)

// leases are units that this proxy took from the store ahead of the requests that will
// need them. This proxy decides those requests without a call. Units that are not used in
// time are returned. The type is safe for concurrent use.
type leases struct {
	// instances is how many proxies hold leases: one proxy may hold a twentieth of a
	// bucket divided by that.
	instances func() int
	seed      maphash.Seed
	shards    [leaseShards]leaseShard
	held      atomic.Int64 // leases in all shards
	refreshes atomic.Int64 // units that the store granted for leases, counted once each time
	// changed wakes Run after a change of the limits: all units are returned.
	changed chan struct{}
}

type leaseShard struct {
	mu     sync.Mutex // guards leases, and the leases in it
	leases map[string]*lease
}

// lease is the units on lease of one bucket, and the last known state of the bucket.
// Instants are microseconds of the monotonic clock, see Limiter.instant.
type lease struct {
	item    limit.Item // of the request that opened the lease, with a copy of its name
	units   int64
	expires int64
	opened  int64
	asking  bool // a call that may bring units is under way
	// remaining is the units that the store had left at the last answer, 0 before the
	// first, and full is the instant at which the bucket will be full again.
	remaining, full int64
	// used is how many units requests have requested since the instant since; rate is the
	// units per leaseAhead, computed from that.
	used, since, rate int64
}

func newLeases(instances func() int) *leases {
	ls := &leases{instances: instances, seed: maphash.MakeSeed(), changed: make(chan struct{}, 1)}
	for i := range ls.shards {
		ls.shards[i].leases = map[string]*lease{}
	}
	return ls
}

func (ls *leases) shard(it *limit.Item) *leaseShard {
	return &ls.shards[maphash.Bytes(ls.seed, it.Name[:it.TagLen])%leaseShards]
}

// take decides a call from leased units, if they suffice for all of its buckets, and
// reports whether it did. Otherwise it may set in the items how many more such checks the
// store should grant. The store decides calls that take nothing: units on lease say little of it.
func (ls *leases) take(call []limit.Item, now int64) bool {
	for i := range call {
		if !call[i].Limit.Lease.On || call[i].Cost == 0 || len(call[i].Name) >= longName {
			return false
		}
	}
	sh := ls.shard(&call[0])
	sh.mu.Lock()
	defer sh.mu.Unlock()
	enough := true
	for i := range call {
		l := sh.leases[string(call[i].Name)]
		enough = enough && l.suffices(&call[i], now)
	}
	if !enough {
		ls.setWanted(sh, call, now)
		return false
	}
	for i := range call {
		it := &call[i]
		l := sh.leases[string(it.Name)]
		l.units -= it.Cost
		l.used += it.Cost
		it.Source = limit.SourceLease
		it.Verdict = bucket.Verdict{
			Allowed: true, Remaining: l.remaining + l.units,
			Reset: max(0, (l.full-now+999)/1000), Window: l.item.Window,
		}
	}
	return true
}

// holds reports whether the lease of an item's bucket has units for it.
func (ls *leases) holds(it *limit.Item, now int64) bool {
	sh := ls.shard(it)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l := sh.leases[string(it.Name)]
	return l.suffices(it, now)
}

// suffices reports whether the lease exists and has the units of an item.
func (l *lease) suffices(it *limit.Item, now int64) bool {
	return l != nil && l.units >= it.Cost && now < l.expires && l.fits(it)
}

// fits reports whether the lease was opened for the same limit.
func (l *lease) fits(it *limit.Item) bool { return l.item.Limit.Params == it.Limit.Params }

// setWanted sets LeaseWanted in the items of a call: how many more checks like it the store
// should grant, as many as all of its buckets may be leased for.
func (ls *leases) setWanted(sh *leaseShard, call []limit.Item, now int64) {
	more := int64(1 << 20)
	for i := range call {
		it := &call[i]
		l := sh.leases[string(it.Name)]
		if l == nil {
			if l = ls.open(sh, it, now); l == nil {
				return
			}
		}
		if !l.fits(it) {
			more = 0
			continue
		}
		l.used += it.Cost
		if l.asking {
			more = 0
			continue
		}
		more = min(more, (ls.size(l, it, now)-l.units)/it.Cost)
	}
	if more <= 0 {
		return
	}
	for i := range call {
		call[i].LeaseWanted = more
		sh.leases[string(call[i].Name)].asking = true
	}
}

// open makes an empty lease, or returns nil if there are maxLeases.
func (ls *leases) open(sh *leaseShard, it *limit.Item, now int64) *lease {
	if ls.held.Load() >= maxLeases {
		return nil
	}
	ls.held.Add(1)
	own := *it
	own.Name = slices.Clone(it.Name)
	l := &lease{item: own, opened: now, since: now, expires: now + it.Limit.Lease.TTL.Microseconds()}
	sh.leases[string(own.Name)] = l
	return l
}

// share returns the divisor for this proxy's part of a bucket: it may hold one share-th
// of the units.
func (ls *leases) share() int64 { return 20 * int64(max(1, ls.instances())) }

// size returns how many units the bucket may be leased for now.
func (ls *leases) size(l *lease, it *limit.Item, now int64) int64 {
	p := &it.Limit.Params
	if l.remaining < p.Capacity/10 {
		return 0 // it runs low: the store decides who gets the rest
	}
	most := p.Capacity / ls.share()
	if !it.Limit.Lease.Auto {
		return min(most, it.Limit.Lease.Size)
	}
	if lasted := now - l.since; lasted >= leaseAhead/10 {
		l.rate = l.used * leaseAhead / lasted
		l.used, l.since = 0, now
	}
	return min(most, l.rate)
}

// put updates the leases from the store's answer to a call, which was sent at sent and
// answered by received, and adds the units that the store granted beyond the call itself.
func (ls *leases) put(call []limit.Item, sent, received int64) {
	sh := ls.shard(&call[0])
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range call {
		it := &call[i]
		l := sh.leases[string(it.Name)]
		if l == nil {
			continue // dropped in the meantime: the granted units are lost
		}
		if it.LeaseWanted > 0 {
			if !l.asking {
				continue // another lease, opened after a reset
			}
			l.asking = false
		}
		if it.Source != limit.SourceStore {
			l.remaining = 0 // the state of the bucket is unknown
			continue
		}
		l.remaining, l.full = it.Remaining, received+it.Reset*1000
		if it.LeaseGranted > 0 {
			ls.refreshes.Add(1)
			l.add(it, sent)
		}
	}
}

// add adds the units that were granted for a lease.
func (l *lease) add(it *limit.Item, sent int64) {
	if l.item.Window != it.Window || !l.fits(it) {
		l.units = 0 // they belong to a window that is over, or to an older limit
	}
	l.item.Limit, l.item.Window = it.Limit, it.Window
	l.units += it.LeaseGranted * it.Cost
	l.expires = sent + it.Limit.Lease.TTL.Microseconds()
	if it.Left > 0 {
		l.expires = min(l.expires, sent+it.Left)
	}
}

// returnUnits returns units to a lease for a request that another bucket denied. It returns
// false if the lease no longer exists: the units belong to the store then.
func (ls *leases) returnUnits(it *limit.Item) bool {
	sh := ls.shard(it)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l := sh.leases[string(it.Name)]
	if l == nil || !l.fits(it) || l.item.Window != it.Window {
		return false
	}
	l.units += it.Cost
	return true
}

// collect removes the leases that expire by now, or all, and returns their unused units.
func (ls *leases) collect(now int64, all bool) []limit.Item {
	var left []limit.Item
	for i := range ls.shards {
		sh := &ls.shards[i]
		sh.mu.Lock()
		for name, l := range sh.leases {
			if l.asking || !all && now < l.expires {
				continue
			}
			if l.units > 0 {
				it := l.item
				it.Cost, it.Source = l.units, limit.SourceStore
				left = append(left, it)
			}
			if l.used > 0 && !all { // it is in use: the last known state of the bucket stays
				l.units, l.used, l.since, l.expires = 0, 0, now, now+l.item.Limit.Lease.TTL.Microseconds()
				continue
			}
			delete(sh.leases, name)
			ls.held.Add(-1)
		}
		sh.mu.Unlock()
	}
	return left
}

// forget deletes the leases for which drop returns true, with their units.
func (ls *leases) forget(drop func(*limit.Item) bool) {
	for i := range ls.shards {
		sh := &ls.shards[i]
		sh.mu.Lock()
		for name, l := range sh.leases {
			if drop(&l.item) {
				delete(sh.leases, name)
				ls.held.Add(-1)
			}
		}
		sh.mu.Unlock()
	}
}

// Run returns the units of expired leases, all units after the limits have changed, and
// all when ctx is done.
func (l *Limiter) Run(ctx context.Context) error {
	tick := time.NewTicker(leaseSweep)
	defer tick.Stop()
	for {
		all := false
		select {
		case <-ctx.Done():
			l.handBack(true)
			return nil
		case <-l.leases.changed:
			all = true
		case <-tick.C:
		}
		l.handBack(all)
	}
}

// handBackTimeout bounds the call that returns units to the store.
const handBackTimeout = time.Second

// handBackAtOnce is how many buckets' units are returned in one call: the checks of
// clients share the same batches.
const handBackAtOnce = 64

func (l *Limiter) handBack(all bool) {
	for left := range slices.Chunk(l.leases.collect(l.instant(l.opts.Now()), all), handBackAtOnce) {
		now := l.opts.Now()
		l.refund(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: handBackTimeout}, left)
	}
}
