package limit

import (
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// warnLocal warns of what a limit says that has no effect, or another one, where a proxy decides by its share.
func (c *compiler) warnLocal(l *Limit) {
	if l.layer == layerOverride || l.Store != PlacementLocal || l.Mode == ModeOff || l.broken || l.Params.Count == 0 {
		return
	}
	if l.warn > 0 {
		c.warn(l.Line, "warn", "%s never warns, as with store: local each proxy knows its own share alone: remove one of them", Quote(l.ID))
	}
	if l.onErrSet && l.OnError == OnErrorClosed {
		c.warn(l.Line, "on_error", "%s has on_error: closed without effect, as store: local asks no store: remove one of them", Quote(l.ID))
	}
	if l.Params.Algorithm != bucket.AlgorithmTokenBucket {
		c.warn(l.Line, "algorithm", "%s is decided as a token bucket with store: local, which admits up to twice %s in one window: remove store if that is too many", Quote(l.ID), l.Rate.Text)
	}
}

// warnShare warns of a limit that has a share of its buckets enforced, and one bucket alone.
func (c *compiler) warnShare(l *Limit) {
	isTenant := func(w condition) bool { return w.kind == propertyTenant && w.exact }
	if l.layer != layerOverride && l.isShareOfOne() && (!l.byTenant || slices.ContainsFunc(l.when, isTenant)) {
		c.warn(l.Line, "enforce", shareOfOne, Quote(l.ID))
	}
}

// warnOwnShare warns, once for a limit, of an override that has a share of one bucket enforced.
func (c *compiler) warnOwnShare(o *RuleSpec, field string, l *Limit) {
	if o.Enforce.Set() && l.isShareOfOne() {
		c.warnOnce([3]string{l.Plan, l.ID, "the share"}, o.Enforce.Line, field+"."+l.ID+".enforce", fmt.Sprintf(shareOfOne, Quote(l.ID)))
	}
}

const shareOfOne = "%s has one bucket, which is enforced whole or not at all, and no share of it: write mode: enforce or mode: shadow"

// isShareOfOne reports whether a share of the buckets of a limit is enforced that counts by the tenant at most.
func (l *Limit) isShareOfOne() bool {
	return l.Mode == ModeEnforce && l.share > 0 && l.share < percentParts && len(l.by) == 0
}

// warnAutoLocal warns of limits that are never decided by shares: a request is where all its limits in the tenant's hash slot may be.
func (c *compiler) warnAutoLocal() {
	if len(c.problems) > 0 { // a limit with a mistake may be the one that is in the way
		return
	}
	compared, overridden := 0, c.overriddenLimits()
	for _, a := range c.set.Limits {
		if a.Store != PlacementAutoLocal || !a.callsTenantSlot() || overridden[a.entryOfPlan()] {
			continue
		}
		for _, b := range c.set.Limits {
			if compared++; compared > mostCompared {
				return
			}
			if b == a || b.Store == PlacementAutoLocal || overridden[b.entryOfPlan()] || !b.callsTenantSlot() || !b.meetsAll(a) {
				continue
			}
			compared += len(c.set.Limits) // which replaced looks through
			if !c.replaced(b) {
				c.warn(a.Line, "store", "%s has auto-local without effect: each of its requests asks the store for %s (%s), which has it not. Give that one store: auto-local too, or remove this one", Quote(a.ID), Quote(b.ID), c.doc.At(b.Line))
				break
			}
		}
	}
}
