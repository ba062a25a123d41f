package limit

import (
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// noteUnreached notes of a limit that another one always denies before: that counts the same requests together with others, and admits no
// more. A higher rate for some requests looks as if they had it. It speaks of tenants without overrides, and notes nothing in a file with mistakes.
func (c *compiler) noteUnreached() {
	if len(c.problems) > 0 {
		return
	}
	compared := 0
	of := map[string][]*Limit{} // those of each plan, "" for the shared ones
	for _, l := range c.set.Limits {
		if l.mayBeUnreached() {
			of[l.Plan] = append(of[l.Plan], l)
		}
	}
	for _, l := range c.set.Limits {
		if l.Missing != MissingPass || !l.mayBeUnreached() {
			continue // with share and deny it holds requests that the other may pass over
		}
		others := of[l.Plan]
		if l.Plan != "" {
			others = slices.Concat(others, of[""])
		}
		for _, other := range others {
			if compared++; compared > mostCompared {
				return
			}
			if other == l || !other.deniesBefore(l) {
				continue
			}
			compared += len(c.set.Limits) // which isTaken looks through
			if !c.isTaken(other, l) {
				c.note(l.Line, "rate", "%s (%s) never denies%s%s: %s (%s) counts its requests too, and denies before it: %s", Quote(l.ID), l.Describe(), c.exceptOverrides(l), l.exceptions(other), Quote(other.ID), other.Describe(), c.insteadOfUnreached(l, other))
				break
			}
		}
	}
}

// exceptOverrides returns words for tenants with overrides of a limit's plan, or of any plan for one that is shared, or "" where there are none.
func (c *compiler) exceptOverrides(l *Limit) string {
	for entry := range c.overriddenLimits() {
		if l.Plan == "" || entry[0] == l.Plan {
			return ", tenants with overrides aside"
		}
	}
	return ""
}

// exceptions returns words for the requests that l denies although other denies before: those without the store, or behind a settlement of
// more than was reserved, which a window forgets when it ends and other limits may not.
func (l *Limit) exceptions(other *Limit) string {
	switch {
	case l.failsCloser(other):
		return " while the store answers"
	case l.FixedCost > 0 || l.isOfKind(other):
		return ""
	}
	return ", unless RL.COMMIT takes more than was reserved"
}

// failsCloser reports whether l fails closed, and other does not.
func (l *Limit) failsCloser(other *Limit) bool {
	return l.OnError == OnErrorClosed && other.OnError != OnErrorClosed
}

// insteadOfUnreached says what to do about l, which other denies before.
func (c *compiler) insteadOfUnreached(l, other *Limit) string {
	if l.Plan != "" && l.Plan == other.Plan && isFiner(l.Level(), other.Level()) { // as checkReplaced wants it
		return fmt.Sprintf("say replaces: [%s] in %s if its requests are to have more", other.ID, Quote(l.ID))
	}
	text := "leave it out, or raise " + Quote(other.ID)
	if len(l.Replaces) > 0 || len(l.when) > 0 || l.warn > 0 || l.failsCloser(other) || c.overriddenLimits()[l.entryOfPlan()] { // it may take the place of others, or has another use
		text = "raise " + Quote(other.ID) + " if its requests are to have more"
	}
	if l.FixedCost == 0 && l.Group != other.Group && l.Params.Capacity/10 >= other.Params.Capacity { // far more units than requests
		text += ", or give " + Quote(other.ID) + " cost: 1 if it counts requests, and " + Quote(l.ID) + " other units, such as bytes"
	}
	return text
}

// overriddenLimits returns the limits of plans that tenants override, by entryOfPlan. It is called once all limits are compiled.
func (c *compiler) overriddenLimits() map[[2]string]bool {
	if c.overridden != nil {
		return c.overridden
	}
	overridden := map[[2]string]bool{}
	for _, l := range c.limits {
		if l.layer == layerOverride {
			overridden[l.entryOfPlan()] = true
		}
	}
	c.overridden = overridden
	return overridden
}

// entryOfPlan returns the plan and the id of a limit.
func (l *Limit) entryOfPlan() [2]string { return [2]string{l.Plan, l.ID} }

// mayBeUnreached reports whether a limit denies by a rate in the store.
func (l *Limit) mayBeUnreached() bool {
	return l.Action == ActionLimit && l.EnforcedAlways() && !l.broken && !l.slots && l.Params.Count > 0 && l.Store == PlacementShared && l.layer != layerOverride
}

// deniesBefore reports whether l counts all requests that other counts, which have all its dimensions, and more of them in one bucket, and
// admits fewer.
func (l *Limit) deniesBefore(other *Limit) bool {
	if l.FixedCost != other.FixedCost || l.MaxCost != other.MaxCost || !other.hasLevelOf(l) || !other.within(l) {
		return false
	}
	if l.isOfKind(other) {
		return admitsMore(other, l) && !admitsMore(l, other)
	}
	return other.Params.AdmitsAllOf(&l.Params)
}

// isOfKind reports whether two limits are token buckets, or have windows that begin and end at once.
func (l *Limit) isOfKind(other *Limit) bool {
	return l.Params.Algorithm == other.Params.Algorithm && (l.Params.Algorithm == bucket.AlgorithmTokenBucket || l.hasWindowsOf(other))
}

// hasWindowsOf reports whether the windows of two limits begin and end at once.
func (l *Limit) hasWindowsOf(other *Limit) bool {
	sameZone := l.Zone == other.Zone || l.Zone != nil && other.Zone != nil && l.Zone.String() == other.Zone.String()
	return l.Params.Period == other.Params.Period && l.Rate.Calendar == other.Rate.Calendar && sameZone
}

// hasLevelOf reports whether l counts by all that other counts by.
func (l *Limit) hasLevelOf(other *Limit) bool {
	own := l.Level()
	return !slices.ContainsFunc(other.Level(), func(name string) bool { return !slices.Contains(own, name) })
}

// isTaken reports whether a limit takes the place of l, or exempts from it, for requests that with is for.
func (c *compiler) isTaken(l, with *Limit) bool {
	return slices.ContainsFunc(c.set.Limits, func(other *Limit) bool { return c.mayReplace(other, l) && canMeet(other, with) })
}
