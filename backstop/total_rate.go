package backstop

import (
	"cmp"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/limitgate/limitgate/limit"
)

const (
	// MaxTotalRate bounds Options.TotalRate, so that thousandths of it can be counted.
	MaxTotalRate = 1_000_000_000
	// tickLength is how often it is looked whose turn it is, in microseconds.
	tickLength = 10_000
	// tooMuch is when the callers should come back, in ms, that ask for more than a
	// second's units: only the store can admit them.
	tooMuch = 1000
	// patience is how long a tenant that was denied is waited for beyond the moment at
	// which it was told to come back, in microseconds.
	patience = 1_000_000
	// maxTenants bounds those that are told apart; the others count as one. To look
	// through so many takes some hundred microseconds, every turnTime.
	maxTenants = 1_000
	// milli is what units are counted in, since less than one comes in a turnTime.
	milli = 1000
)

// fairLimiter bounds what one instance admits for all tenants together: a bucket of one
// second's units. While it does not suffice, what a tenant was denied is held ready for
// it from those that were served more, so that all are served the same in the end, and
// large requests come to their turn (start-time fair queueing, Goyal, Vin and Cheng
// 1996, with requests that come back instead of a queue). Any number of goroutines may
// use it.
type fairLimiter struct {
	rate int64 // units a second

	mu      sync.Mutex // guards the rest
	last    int64      // the latest time of a decision
	turn    int64      // the number of the present turnTime
	left    int64      // thousandths
	tenants map[string]*tenantQueue
	// waiting are those who wait, who was served least first.
	waiting []waiting
	// least is what anybody was served at the least: newcomers begin there.
	least int64
}

// tenantQueue is what is known of a tenant.
type tenantQueue struct {
	served int64 // thousandths, since a beginning that all share
	denied int64 // what it waits for, 0 for nothing
	until  int64 // for so long it is waited for, or remembered
}

// waiting is one who was served so much, and what it and those before it were denied.
type waiting struct{ served, denied int64 }

func newTotal(rate int64) *fairLimiter {
	return &fairLimiter{rate: rate, left: rate * milli, tenants: map[string]*tenantQueue{}}
}

// take takes a tenant's cost, at now in microseconds, or returns in how many
// milliseconds to ask again.
func (t *fairLimiter) take(now int64, tenant string, cost int64) (wait int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now = limit.Monotonic(&t.last, now)
	if turn := now / tickLength; turn != t.turn {
		t.look(turn)
	}
	d := t.demand(tenant)
	if cost > t.rate {
		return tooMuch
	}
	need := cost * milli
	free := t.left - t.heldFrom(d)
	if need <= free {
		t.left -= need
		d.served, d.denied, d.until = d.served+need, 0, now+patience
		return 0
	}
	wait = max(tickLength/1000, (need-free)/t.rate) + 1
	d.denied, d.until = need, now+wait*1000+patience
	return wait
}

// heldFrom returns what is held ready for those that were served less than d.
func (t *fairLimiter) heldFrom(d *tenantQueue) int64 {
	i := sort.Search(len(t.waiting), func(i int) bool { return t.waiting[i].served >= d.served })
	if i == 0 {
		return 0
	}
	return t.waiting[i-1].denied
}

// demand returns that of a tenant.
func (t *fairLimiter) demand(tenant string) *tenantQueue {
	d := t.tenants[tenant]
	if d == nil && len(t.tenants) >= maxTenants {
		tenant = ""
		d = t.tenants[tenant]
	}
	if d == nil {
		d = &tenantQueue{served: t.least}
		t.tenants[strings.Clone(tenant)] = d // the request's names are its connection's memory
	}
	return d
}

// look adds what was earned since the last look, and finds out who waits.
func (t *fairLimiter) look(turn int64) {
	earned := turn - t.turn
	if earned < 0 || earned > second/tickLength {
		earned = second / tickLength // the bucket is full
	}
	t.turn = turn
	t.left = min(t.rate*milli, t.left+earned*t.rate*milli*tickLength/second)
	t.waiting, t.least = t.waiting[:0], 0
	first := true
	for tenant, d := range t.tenants {
		if d.until <= t.last {
			delete(t.tenants, tenant)
			continue
		}
		if first || d.served < t.least {
			t.least, first = d.served, false
		}
		if d.denied > 0 {
			t.waiting = append(t.waiting, waiting{d.served, d.denied})
		}
	}
	slices.SortFunc(t.waiting, func(a, b waiting) int { return cmp.Compare(a.served, b.served) })
	for i := range t.waiting[min(1, len(t.waiting)):] {
		t.waiting[i+1].denied += t.waiting[i].denied
	}
}
