package limiter

import (
	"time"

	"github.com/limitgate/limitgate/limit"
)

// CacheLateReply learns from a call that the store decided after its caller had left,
// and that it was sent at sent: refusals are remembered, and units that were granted
// ahead are held. It does not keep the items. Any number of goroutines may call it.
func (l *Limiter) CacheLateReply(call []limit.Item, sent time.Time) {
	if call[0].Replayed {
		return
	}
	received := l.instant(l.opts.Now())
	if l.deny != nil {
		l.deny.learn(call, l.instant(sent), received)
	}
	if call[0].Limit.Lease.On {
		l.leases.putLate(call, l.instant(sent), received)
	}
}

// putLate adds units to leases that a call brought for which nobody waits. What
// would make a lease too large, or came for one that is gone, is lost, as after the
// death of this process: the bucket earns it again.
func (ls *leases) putLate(call []limit.Item, sent, received int64) {
	sh := ls.shard(&call[0])
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := range call {
		it := &call[i]
		l := sh.leases[string(it.Name)]
		// While a call is on its way that may bring as much there is no room for more;
		// nor are units of another window or limit added to those that are held.
		if l == nil || l.opened > sent || l.asking || it.LeaseGranted == 0 || !l.fits(it) || l.units > 0 && l.item.Window != it.Window {
			continue
		}
		if held := l.units + it.LeaseGranted*it.Cost; held <= it.Limit.Params.Capacity/ls.share() {
			l.remaining, l.full = it.Remaining, received+it.Reset*1000
			l.add(it, sent)
		}
	}
}
