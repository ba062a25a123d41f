package limit

import (
	"fmt"
	"slices"
	"time"

	"github.com/limitgate/limitgate/limit/bucket"
)

// Lease is whether and how units of a limit may be taken ahead of the requests that need
// them.
type Lease struct {
	On bool
	// Auto sizes leases by the rate at which the units are used.
	Auto bool
	// Size is how many units are taken at a time if Auto is false.
	Size int64
	// TTL is how long units may be held unused.
	TTL time.Duration
}

// String describes the lease in a few words.
func (l Lease) String() string {
	switch {
	case !l.On:
		return "-"
	case l.Auto:
		return "auto for " + l.TTL.String()
	default:
		return fmt.Sprintf("%d for %s", l.Size, l.TTL)
	}
}

// The bounds and the default of Lease.TTL.
const (
	MinLeaseTTL     = time.Second
	MaxLeaseTTL     = 5 * time.Second
	DefaultLeaseTTL = 2 * time.Second
)

// LeaseSpec is the lease of a limit as it is written: the word auto, or a size and a TTL.
type LeaseSpec struct {
	Word, Size, TTL Text
}

// Set reports whether the limit has a lease setting.
func (s *LeaseSpec) Set() bool { t := s.first(); return t.Set() }

// DescribeLease describes the lease of l where n instances share it, or returns "".
func (l *Limit) DescribeLease(n int64) string {
	if !l.Lease.On {
		return ""
	}
	most := l.MostLeased(n)
	if most == 0 {
		return fmt.Sprintf("none: a twentieth of %d units, shared by %d instances, is less than one", l.Params.Capacity, n)
	}
	return fmt.Sprintf("up to %d units for %s: at most %d of %d units, %.1f %%, are held unused by %d instances", most/n, l.Lease.TTL, most, l.Params.Capacity, 100*float64(most)/float64(l.Params.Capacity), n)
}

// first returns the first text of s that is set.
func (s *LeaseSpec) first() Text {
	for _, t := range []Text{s.Word, s.Size, s.TTL} {
		if t.Set() {
			return t
		}
	}
	return Text{}
}

func (c *compiler) compileLease(spec *RuleSpec, l *Limit) {
	s := &spec.Lease
	if !s.Set() || l.Action != ActionLimit || l.Params.Algorithm.ExpiresPerUnit() { // which checkOneByOne refuses
		return
	}
	l.Lease = Lease{On: true, Auto: true, TTL: DefaultLeaseTTL}
	if l.Store == PlacementLocal {
		c.fail(s.first().Line, "lease", "store: local asks no store, so there is nothing to lease: remove one of them")
	}
	if s.Word.Set() && s.Word.Value != "auto" {
		c.fail(s.Word.Line, "lease", "%s is not a lease: write auto, or {size: 10, ttl: 2s}", Quote(s.Word.Value))
	}
	if s.Size.Set() {
		size, err := bucket.ParseDigits(s.Size.Value)
		if err != nil || size < 1 || size > bucket.MaxCost {
			c.fail(s.Size.Line, "lease.size", "%s is not a number of units: write a whole number from 1 to %d", Quote(s.Size.Value), bucket.MaxCost)
		}
		l.Lease.Auto, l.Lease.Size = false, size
	}
	if s.TTL.Set() {
		ttl, err := time.ParseDuration(s.TTL.Value)
		switch {
		case err != nil:
			c.fail(s.TTL.Line, "lease.ttl", "%s is not a time: write for example %s", Quote(s.TTL.Value), DefaultLeaseTTL)
		case ttl < MinLeaseTTL || ttl > MaxLeaseTTL:
			c.fail(s.TTL.Line, "lease.ttl", "%s is out of range: want %s to %s", s.TTL.Value, MinLeaseTTL, MaxLeaseTTL)
		}
		l.Lease.TTL = ttl
	}
}

// leasedPart is the part of a bucket that all instances together may hold unused: one of so many.
const leasedPart = 20

// MostLeased returns how many units all of n instances together may hold of one bucket of
// l: its error bound, in units. It is 0 for a limit without leases.
func (l *Limit) MostLeased(n int64) int64 {
	if !l.Lease.On {
		return 0
	}
	most := l.Params.Capacity / (leasedPart * n)
	if !l.Lease.Auto {
		most = min(most, l.Lease.Size)
	}
	return most * n
}

// warnLeases warns of leases that are never used: a request is decided from leases where all its limits in the
// tenant's hash slot have one.
func (c *compiler) warnLeases() {
	if len(c.problems) > 0 { // a limit with a mistake may be the one without a lease
		return
	}
	compared := 0
	for _, a := range c.set.Limits {
		if !a.Lease.On || a.Mode == ModeOff {
			continue
		}
		switch most := a.MostLeased(1); {
		case most == 0:
			c.warn(a.Line, "lease", "%s has one without effect: a proxy leases at most a twentieth of a bucket, which for %d units is less than one. Remove it, or give the bucket %d units or more", Quote(a.ID), a.Params.Capacity, leasedPart)
			continue
		case a.Lease.Size > most:
			c.note(a.Line, "lease.size", "of a bucket of %d units a proxy leases at most a twentieth, %d, and not %d", a.Params.Capacity, most, a.Lease.Size)
		}
		if !a.callsTenantSlot() {
			continue
		}
		if b := c.askedBeside(a, &compared, func(b *Limit) bool { return !b.Lease.On }); b != nil {
			c.warn(a.Line, "lease", "%s has one without effect: each of its requests asks the store for %s (%s), which has none. Give that one a lease too, or remove this one", Quote(a.ID), Quote(b.ID), c.doc.At(b.Line))
		}
	}
}

// askedBeside returns the first limit in the tenant's hash slot that each request of a asks the store for, of those without something, or
// nil, also once mostCompared are compared.
func (c *compiler) askedBeside(a *Limit, compared *int, isWithout func(b *Limit) bool) *Limit {
	for _, b := range c.set.Limits {
		if *compared++; *compared > mostCompared {
			return nil
		}
		if b == a || !isWithout(b) || !b.callsTenantSlot() || !b.meetsAll(a) {
			continue
		}
		*compared += len(c.set.Limits) // which replaced looks through
		if !c.replaced(b) {
			return b
		}
	}
	return nil
}

// callsTenantSlot reports whether a check of l is part of the call for the buckets in the tenant's hash slot.
func (l *Limit) callsTenantSlot() bool {
	return l.Action == ActionLimit && l.Mode != ModeOff && !l.slots && !l.broken && l.layer != layerOverride && l.byTenant && l.Store != PlacementLocal
}

// meetsAll reports whether l applies to each request that a applies to, unless another limit replaces l.
func (l *Limit) meetsAll(a *Limit) bool {
	if slices.Contains(a.Replaces, l.ID) || l.Plan != "" && l.Plan != a.Plan || l.Tenant != "" && l.Tenant != a.Tenant || !l.conditionsIn(a, a) || takesPlace(a, l) {
		return false
	}
	return l.Missing != MissingPass || !slices.ContainsFunc(l.by, func(d dimension) bool {
		return a.Missing == MissingShare || !slices.ContainsFunc(a.by, func(of dimension) bool { return of.text == d.text })
	})
}

// replaced reports whether another limit applies in place of l to some requests.
func (c *compiler) replaced(l *Limit) bool {
	return slices.ContainsFunc(c.set.Limits, func(other *Limit) bool { return c.mayReplace(other, l) })
}

// mayReplace reports whether other applies in place of l to some requests. One that is off does so only where a tenant overrides it.
func (c *compiler) mayReplace(other, l *Limit) bool {
	return other != l && (other.Mode != ModeOff || c.overriddenLimits()[other.entryOfPlan()]) && (other.Plan == l.Plan || other.Plan == "" || l.Plan == "") &&
		(slices.Contains(other.Replaces, l.ID) || takesPlace(other, l))
}
