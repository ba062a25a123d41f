package limiter

import (
	"time"

	"github.com/limitgate/limitgate/limit"
)

// CacheLateReply caches the result of a call that was sent at sent and that the store
// decided after its caller had left: denials are cached, and granted lease units are
// held. It does not retain the items. It is safe for concurrent use.
func (l *Limiter) CacheLateReply(call []limit.Item, sent time.Time) {
	if call[0].Replayed {
		return
	}
	received := l.instant(l.opts.Now())
	if l.deny != nil {
		l.deny.update(call, l.instant(sent), received)
	}
	if call[0].Limit.Lease.On {
		l.leases.putLate(call, l.instant(sent), received)
	}
}

// putLate adds units to leases that a call brought after its caller had left. Units that
// would make a lease too large, or belong to a lease that no longer exists, are lost, as
// after a crash of this process: the bucket earns them again.
func (ls *leases) putLate(call []limit.Item, sent, received int64) {
	sh := ls.shard(&call[0])
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range call {
		it := &call[i]
		l := sh.leases[string(it.Name)]
		// While another call is under way that may bring as many units there is no room
		// for these. Units of another window or limit are not added to those that are
		// held.
		if l == nil || l.opened > sent || l.asking || it.LeaseGranted == 0 || !l.fits(it) || l.units > 0 && l.item.Window != it.Window {
			continue
		}
		if held := l.units + it.LeaseGranted*it.Cost; held <= it.Limit.Params.Capacity/ls.share() {
			l.remaining, l.full = it.Remaining, received+it.Reset*1000
			l.add(it, sent)
		}
	}
}
