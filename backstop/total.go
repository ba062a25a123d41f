package backstop

import (
	"cmp"
	"slices"
	"sync"
)

const (
	// MaxTotalRate bounds Options.TotalRate, so that thousandths of it can be counted.
	MaxTotalRate = 1_000_000_000
	// slotTime is how often the total is divided anew, in microseconds: so long may
	// one tenant have what others ask for from now on.
	slotTime       = 100_000
	slotsPerSecond = 10
	// maxTenants bounds those that are told apart within a slot; the others share. With
	// so many, dividing takes a fifth of a millisecond, for which every decision waits.
	maxTenants = 1_000
	// milli is what units are counted in, so that many tenants can share few of them.
	milli = 1000
)

// total bounds what one instance admits for all tenants together: a bucket of one
// second's units. In each slot of time what is there is divided between those who
// asked in the slot before: who asked for less than a fair part gets all of it, the
// others get the same, and may save it up for a request that costs more (max-min
// fairness, as in Bertsekas and Gallager, Data Networks, 6.5.2). What nobody was
// given is for whoever comes first. Units are counted in thousandths. Any number of
// goroutines may use it.
type total struct {
	rate int64 // units a second

	mu      sync.Mutex // guards the rest
	last    int64      // the latest time of a decision
	slot    int64      // the number of the present slot
	left    int64      // below 0 after a request that cost more than there can be
	given   int64      // the part of left that tenants have been given
	tenants map[string]*claim
}

// claim is what a tenant asked for in this slot, and what it has been given and not
// used. Until it should have come back, and some time longer, it wants what it was
// denied.
type claim struct{ asked, given, denied, until int64 }

func newTotal(rate int64) *total {
	return &total{rate: rate, left: rate * milli, tenants: map[string]*claim{}}
}

// take takes a tenant's cost, at now in microseconds, or returns in how many
// milliseconds to ask again.
func (t *total) take(now int64, tenant string, cost int64) (wait int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now = monotonic(&t.last, now)
	if slot := now / slotTime; slot != t.slot {
		t.divide(slot)
	}
	c := t.claim(tenant)
	full := cost * milli
	cost = min(full, t.rate*milli) // one that can never fit takes all there is
	c.asked += cost
	if missing := cost - c.given - (t.left - t.given); missing > 0 {
		wait = max(((t.slot+1)*slotTime-now)/1000, missing/t.rate) + 1
		c.denied, c.until = max(c.denied, cost), max(c.until, now+2*wait*1000+slotsPerSecond*slotTime)
		return wait
	}
	own := min(cost, c.given)
	c.given -= own
	t.given -= own
	t.left -= full
	c.denied = 0
	return 0
}

// claim returns that of a tenant.
func (t *total) claim(tenant string) *claim {
	c := t.tenants[tenant]
	if c == nil && len(t.tenants) >= maxTenants {
		tenant = ""
		c = t.tenants[tenant]
	}
	if c == nil {
		c = &claim{}
		t.tenants[tenant] = c
	}
	return c
}

// divide begins a slot: what was earned since the last one is divided between those
// who asked for more than they have been given.
func (t *total) divide(slot int64) {
	slots := slot - t.slot
	if slots < 0 || slots > slotsPerSecond {
		slots = slotsPerSecond // the bucket is full
	}
	t.slot = slot
	t.left = min(t.rate*milli, t.left+slots*t.rate*milli/slotsPerSecond)
	wanting := t.wanting()
	slices.SortFunc(wanting, func(a, b *claim) int { return cmp.Compare(a.asked-a.given, b.asked-b.given) })
	for i, c := range wanting {
		part := min(c.asked-c.given, max(0, t.left-t.given)/int64(len(wanting)-i))
		c.given += part
		t.given += part
		c.asked = 0
	}
}

// wanting returns the claims of those who want more than they have been given, and
// takes from those who want less what they do not need.
func (t *total) wanting() []*claim {
	var wanting []*claim
	for tenant, c := range t.tenants {
		if c.until <= t.last { // it did not come back
			c.denied = 0
		}
		if c.asked = max(c.asked, c.denied); c.asked > c.given {
			wanting = append(wanting, c)
			continue
		}
		t.given -= c.given - c.asked
		c.given, c.asked = c.asked, 0
		if c.given == 0 {
			delete(t.tenants, tenant)
		}
	}
	return wanting
}
