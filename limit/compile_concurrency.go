package limit

import (
	"fmt"

	"github.com/limitgate/limitgate/limit/bucket"
)

// MaxSlots bounds the slots of a limit of concurrency.
const MaxSlots = bucket.MaxSlots

// compileSlots reads the number of slots of a limit of concurrency.
func (c *compiler) compileSlots(spec *RuleSpec, l *Limit) {
	for _, t := range []struct {
		text  Text
		field string
	}{{spec.Rate, "rate"}, {spec.Burst, "burst"}, {spec.Cost, "cost"}, {spec.MaxCost, "max_cost"}, {spec.Timezone, "timezone"}} {
		if t.text.Set() {
			c.fail(t.text.Line, t.field, "a limit of concurrency counts the slots that are held, one for each request: remove this, and say slots")
		}
	}
	if !spec.Slots.Set() && spec.RateUnread {
		return
	}
	if !spec.Slots.Set() {
		c.fail(spec.Line, "slots", "say how many may be held at once: for example slots: 20")
		return
	}
	n, err := bucket.ParseDigits(spec.Slots.Value)
	if err != nil || n < 1 || n > bucket.MaxSlots {
		c.fail(spec.Slots.Line, "slots", "%s is not a number of slots: write a whole number from 1 to %d", Quote(spec.Slots.Value), bucket.MaxSlots)
		return
	}
	text := fmt.Sprintf("%d slots", n)
	if n == 1 {
		text = "1 slot"
	}
	l.Rate = bucket.Rate{Count: n, Period: DefaultHold.Microseconds(), Text: text}
	l.Params = bucket.Params{Algorithm: bucket.AlgorithmConcurrency, Count: n, Period: l.Rate.Period, Capacity: n}
	c.checkAddressTTL(spec, l)
}

// checkOneByOne rejects settings that limits with expiring units do not support.
func (c *compiler) checkOneByOne(spec *RuleSpec, l *Limit) {
	if l.Store != PlacementShared {
		c.fail(spec.Store.Line, "store", "a %s lives in the store, exact for all: remove it, or choose another algorithm", l.Params.Algorithm)
		l.Store = PlacementShared
	}
	switch {
	case spec.Lease.Set() && l.Params.Algorithm == bucket.AlgorithmConcurrency:
		c.fail(spec.Lease.first().Line, "lease", "RL.ACQUIRE says for how long a slot is held, with TTL in milliseconds: remove it")
	case spec.Lease.Set():
		c.fail(spec.Lease.first().Line, "lease", "units of a %s are not taken ahead: remove it, or choose another algorithm", l.Params.Algorithm)
	}
	if l.Params.Algorithm == bucket.AlgorithmConcurrency && l.layer == layerShared {
		c.fail(spec.Line, "algorithm", "slots are held by a tenant and given back in its hash slot: move the limit into a plan, and count by tenant")
	}
}

// HoldsSlots reports whether a limit is one of concurrency, of which requests hold slots.
func (l *Limit) HoldsSlots() bool { return l.slots }
