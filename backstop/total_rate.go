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
	// tickLength is how often refill updates the waiting tenants, in microseconds.
	tickLength = 10_000
	// oversizedWait is the wait, in ms, for callers that request more than a second's units:
	// only the store can admit them.
	oversizedWait = 1000
	// reservedBeyond is how long units are reserved for a denied tenant beyond the end of its
	// wait, in microseconds.
	reservedBeyond = 1_000_000
	// maxTenants bounds the tenants with a state of their own; the others share one. To
	// look through that many takes some hundred microseconds, every tickLength.
	maxTenants = 1_000
	// milli is the precision of units, since less than one is earned in a tickLength.
	milli = 1000
)

// fairLimiter bounds the units that one instance admits for all tenants together: a
// bucket of one second's units. While the bucket is empty, the units of a denied request are
// reserved for its tenant. Tenants that were served less come first. In the end all are
// served the same, and large requests get their turn (start-time fair queueing, Goyal,
// Vin and Cheng 1996, with requests that come back instead of a queue). The type is safe
// for concurrent use.
type fairLimiter struct {
	rate int64 // units a second

	mu      sync.Mutex // guards the fields below
	last    int64      // the latest time of a decision
	turn    int64      // the number of the present tick
	left    int64      // thousandths
	tenants map[string]*tenantState
	// waiting are the waiting tenants, the least served first.
	waiting []waiting
	// least is the smallest served of all tenants: new tenants begin there.
	least int64
}

// tenantState is the state of a tenant.
type tenantState struct {
	served int64 // thousandths, since a common beginning
	denied int64 // the thousandths for which it waits, 0 for none
	until  int64 // when its reservation and its state expire
}

// waiting is the served units of a waiting tenant, and the sum of the denied units of it
// and of those before it.
type waiting struct{ served, denied int64 }

func newTotal(rate int64) *fairLimiter {
	return &fairLimiter{rate: rate, left: rate * milli, tenants: map[string]*tenantState{}}
}

// take takes a tenant's cost, at now in microseconds, or returns the milliseconds after
// which to retry.
func (t *fairLimiter) take(now int64, tenant string, cost int64) (wait int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now = t.advance(now)
	d := t.tenant(tenant)
	need := cost * milli
	switch wait = t.wait(d, cost); {
	case cost > t.rate:
	case wait == 0:
		t.left -= need
		d.served, d.denied, d.until = d.served+need, 0, now+reservedBeyond
	default:
		d.denied, d.until = need, now+wait*1000+reservedBeyond
	}
	return wait
}

// peek returns what take would, and takes nothing.
func (t *fairLimiter) peek(now int64, tenant string, cost int64) (wait int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.advance(now)
	d, _, _ := t.known(tenant)
	return t.wait(d, cost)
}

// advance adds the units earned until now, and returns the time of the decision. The caller holds mu.
func (t *fairLimiter) advance(now int64) int64 {
	now = limit.Monotonic(&t.last, now)
	if turn := now / tickLength; turn != t.turn {
		t.refill(turn)
	}
	return now
}

// wait returns the milliseconds after which a tenant may take a cost, 0 if it may now.
func (t *fairLimiter) wait(d *tenantState, cost int64) int64 {
	if cost > t.rate {
		return oversizedWait
	}
	need := cost * milli
	free := t.left - t.heldFrom(d)
	if need <= free {
		return 0
	}
	return max(tickLength/1000, (need-free)/t.rate) + 1
}

// heldFrom returns the units that are reserved for tenants that were served less than d.
func (t *fairLimiter) heldFrom(d *tenantState) int64 {
	i := sort.Search(len(t.waiting), func(i int) bool { return t.waiting[i].served >= d.served })
	if i == 0 {
		return 0
	}
	return t.waiting[i-1].denied
}

// tenant returns the state of a tenant, and keeps it.
func (t *fairLimiter) tenant(name string) *tenantState {
	d, name, found := t.known(name)
	if !found {
		t.tenants[strings.Clone(name)] = d // a copy: the connection reuses the memory of the request's names
	}
	return d
}

// known returns the state of a tenant and the name that has it, which is "" beyond maxTenants. Where there is none it
// returns the state of a new tenant.
func (t *fairLimiter) known(name string) (d *tenantState, of string, found bool) {
	if d = t.tenants[name]; d == nil && len(t.tenants) >= maxTenants {
		name = ""
		d = t.tenants[name]
	}
	if d == nil {
		return &tenantState{served: t.least}, name, false
	}
	return d, name, true
}

// refill adds the units earned since the last call, and updates the waiting tenants.
func (t *fairLimiter) refill(turn int64) {
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
