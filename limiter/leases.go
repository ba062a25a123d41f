package limiter

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/limitgate/limitgate/limit"
)

const (
	// leaseShards is how many locks the leases are spread over.
	leaseShards = 64
	// maxLeases bounds the buckets of which units are held: further ones are
	// decided by the store. At some 300 bytes each this is 20 MB.
	maxLeases = 1 << 16
	// leaseSweep is how often units are handed back whose time is up.
	leaseSweep = 100 * time.Millisecond
	// leaseAhead is how long an automatic lease is meant to last, in microseconds.
	leaseAhead = 100_000
)

// leases are units that this proxy took from the store ahead of the requests
// that will need them: these are decided here, without a call. What is not
// needed in time goes back. Any number of goroutines may use it.
type leases struct {
	// instances is how many proxies hold leases: one may hold a twentieth of a bucket
	// divided by that.
	instances func() int
	seed      maphash.Seed
	shards    [leaseShards]leaseShard
	held      atomic.Int64 // leases in all shards
	// changed wakes Run after the limits changed: everything goes back.
	changed chan struct{}
}

type leaseShard struct {
	mu     sync.Mutex // guards the rest, and the leases in it
	leases map[string]*lease
}

// lease is what is held of one bucket, and what is known of it. Instants are
// microseconds by a
// clock that nobody sets.
type lease struct {
	item    limit.Item // of the request that it was made for, with a name of its own
	units   int64
	expires int64
	opened  int64
	asking  bool // a call that may bring units is on its way
	// remaining is what the store had left when it was asked last, 0 before that, and
	// full the instant at which it will be full again.
	remaining, full int64
	// used is what requests asked for since since; rate is what they took in leaseAhead,
	// worked out from that.
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

// take decides a call from units that are held, if they suffice for all of its
// buckets, and reports whether it did. Otherwise it may note in the items how
// many more such checks the store should grant.
func (ls *leases) take(call []limit.Item, now int64) bool {
	for i := range call {
		if !call[i].Limit.Lease.On || len(call[i].Name) >= longName {
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
		ls.wish(sh, call, now)
		return false
	}
	for i := range call {
		it := &call[i]
		l := sh.leases[string(it.Name)]
		l.units -= it.Cost
		l.used += it.Cost
		it.Source = limit.SourceLease
		it.Verdict = limit.Verdict{
			Allowed: true, Remaining: l.remaining + l.units,
			Reset: max(0, (l.full-now+999)/1000), Window: l.item.Window,
		}
	}
	return true
}

// holds reports whether there are units for an item.
func (ls *leases) holds(it *limit.Item, now int64) bool {
	sh := ls.shard(it)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	l := sh.leases[string(it.Name)]
	return l.suffices(it, now)
}

// suffices reports whether the lease, if there is one, has the units of an item.
func (l *lease) suffices(it *limit.Item, now int64) bool {
	return l != nil && l.units >= it.Cost && now < l.expires && l.fits(it)
}

// fits reports whether the lease was made for the same limit.
func (l *lease) fits(it *limit.Item) bool { return l.item.Limit.Params == it.Limit.Params }

// wish notes in the items of a call how many more checks like it the store
// should grant: as many as all of its buckets may be leased for.
func (ls *leases) wish(sh *leaseShard, call []limit.Item, now int64) {
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

// open makes an empty lease, or returns nil when there are too many.
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

// share returns of which part of a bucket units may be held here: the share-th.
func (ls *leases) share() int64 { return 20 * int64(max(1, ls.instances())) }

// size returns how many units the bucket may be leased for now.
func (ls *leases) size(l *lease, it *limit.Item, now int64) int64 {
	p := &it.Limit.Params
	if l.remaining < p.Capacity/10 {
		return 0 // it runs low: whoever comes first gets what is left
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

// put learns from the store's answer to a call, which it was asked for at sent
// and which came by received, and adds what it granted beyond the call itself.
func (ls *leases) put(call []limit.Item, sent, received int64) {
	sh := ls.shard(&call[0])
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range call {
		it := &call[i]
		l := sh.leases[string(it.Name)]
		if l == nil {
			continue // dropped meanwhile: what was granted is lost
		}
		if it.LeaseWanted > 0 {
			if !l.asking {
				continue // another lease, opened after a reset
			}
			l.asking = false
		}
		if it.Source != limit.SourceStore {
			l.remaining = 0 // nothing is known of it
			continue
		}
		l.remaining, l.full = it.Remaining, received+it.Reset*1000
		if it.LeaseGranted > 0 {
			l.add(it, sent)
		}
	}
}

// add adds the units that were granted for a lease.
func (l *lease) add(it *limit.Item, sent int64) {
	if l.item.Window != it.Window || !l.fits(it) {
		l.units = 0 // they were of a window that is over, or of an older limit
	}
	l.item.Limit, l.item.Window = it.Limit, it.Window
	l.units += it.LeaseGranted * it.Cost
	l.expires = sent + it.Limit.Lease.TTL.Microseconds()
	if it.Left > 0 {
		l.expires = min(l.expires, sent+it.Left)
	}
}

// giveBack takes back units of a lease for a request that another bucket denied.
// It reports false when the lease is gone: then they belong to the store.
func (ls *leases) giveBack(it *limit.Item) bool {
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

// collect removes the leases that end by now, or all, and returns what is left in
// them.
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
			if l.used > 0 && !all { // it is in use: what is known of it stays
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

// forget drops the leases for which drop holds, with their units.
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

// Run hands back units whose time is up, all after the limits have changed, and
// all in the end, when ctx is done.
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

// handBackTimeout bounds how long the store may take for it.
const handBackTimeout = time.Second

// handBackAtOnce is how many buckets' units go back together: the checks of
// clients travel in the same batches.
const handBackAtOnce = 64

func (l *Limiter) handBack(all bool) {
	for left := range slices.Chunk(l.leases.collect(l.instant(l.opts.Now()), all), handBackAtOnce) {
		now := l.opts.Now()
		l.refund(limit.DecisionTime{Now: now.UnixMicro(), Start: now, Timeout: handBackTimeout}, left)
	}
}
