package limit

import (
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// localMistake is a field of a limit that has no effect, or another one, where a proxy decides by its share.
type localMistake struct{ field, text string }

// localMistakes returns those of a limit.
func (l *Limit) localMistakes() (all []localMistake) {
	if l.Store != PlacementLocal || l.Mode == ModeOff || l.broken || l.Params.Count == 0 {
		return nil
	}
	if l.warn > 0 {
		all = append(all, localMistake{"warn", Quote(l.ID) + " never warns, as with store: local each proxy knows its own share alone: remove one of them"})
	}
	if l.onErrSet && l.OnError == OnErrorClosed {
		all = append(all, localMistake{"on_error", Quote(l.ID) + " has on_error: closed without effect, as store: local asks no store: remove one of them"})
	}
	if l.Params.Algorithm != bucket.AlgorithmTokenBucket {
		all = append(all, localMistake{"algorithm", fmt.Sprintf("%s is decided as a token bucket with store: local, which admits up to twice %s in one window: remove store if that is too many", Quote(l.ID), l.Rate.Text)})
	}
	return all
}

// warnLocal warns of the localMistakes of a limit that is no override.
func (c *compiler) warnLocal(l *Limit) {
	if l.layer == layerOverride {
		return
	}
	for _, m := range l.localMistakes() {
		c.warn(l.Line, m.field, "%s", m.text)
	}
}

// warnOwnLocal warns, once for a limit, of those of an override that sets one of the fields, or that may switch the limit on.
func (c *compiler) warnOwnLocal(o *RuleSpec, field string, of, l *Limit) {
	if !o.Store.Set() && !o.Warn.Set() && !o.OnError.Set() && !o.Algorithm.Set() && !o.Mode.Set() && !o.Enforce.Set() {
		return
	}
	known := of.localMistakes()
	for _, m := range l.localMistakes() {
		if !slices.ContainsFunc(known, func(k localMistake) bool { return k.field == m.field }) {
			c.warnOnce([3]string{l.Plan, l.ID, "local " + m.field}, o.Line, field+"."+l.ID+"."+m.field, m.text)
		}
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
		isWithout := func(b *Limit) bool { return b.Store != PlacementAutoLocal && !overridden[b.entryOfPlan()] }
		if b := c.askedBeside(a, &compared, isWithout); b != nil {
			c.warn(a.Line, "store", "%s has auto-local without effect: each of its requests asks the store for %s (%s), which has it not. Give that one store: auto-local too, or remove this one", Quote(a.ID), Quote(b.ID), c.doc.At(b.Line))
		}
	}
}
