package limit

import (
	"fmt"
	"slices"

	"github.com/limitgate/limitgate/limit/bucket"
)

// noteUnreached notes of a limit that another one always denies before: that counts the same requests together with others, and admits no
// more, for any tenant. A higher rate for some requests looks as if they had it. It notes nothing in a file with mistakes.
func (c *compiler) noteUnreached() {
	if len(c.problems) > 0 {
		return
	}
	compared, overridden := 0, map[[2]string]bool{}
	for _, l := range c.limits {
		if l.layer == layerOverride {
			overridden[[2]string{l.Plan, l.ID}] = true
		}
	}
	for _, l := range c.set.Limits {
		if !l.mayBeUnreached() || overridden[[2]string{l.Plan, l.ID}] {
			continue
		}
		for _, other := range c.set.Limits {
			if compared++; compared > mostCompared {
				return
			}
			if other != l && !overridden[[2]string{other.Plan, other.ID}] && other.mayBeUnreached() && other.deniesBefore(l) && !c.isTaken(other, l) {
				advice := "leave it out, or raise " + Quote(other.ID)
				if l.Plan != "" && l.Plan == other.Plan && isFiner(l.Level(), other.Level()) { // as checkReplaced wants it
					advice = fmt.Sprintf("say replaces: [%s] in %s if its requests are to have more", other.ID, Quote(l.ID))
				}
				c.note(l.Line, "rate", "%s (%s) never denies: %s (%s) counts its requests too, and denies before it: %s", Quote(l.ID), l.Describe(), Quote(other.ID), other.Describe(), advice)
				break
			}
		}
	}
}

// mayBeUnreached reports whether a limit denies by a rate in the store.
func (l *Limit) mayBeUnreached() bool {
	return l.Action == ActionLimit && l.EnforcedAlways() && !l.broken && !l.slots && l.Params.Count > 0 && l.Store == PlacementShared && l.layer != layerOverride
}

// deniesBefore reports whether l counts all requests that other counts, and more of them in one bucket, and admits fewer.
func (l *Limit) deniesBefore(other *Limit) bool {
	if l.Plan != "" && l.Plan != other.Plan || l.optional() != "" || l.FixedCost != other.FixedCost || l.MaxCost != other.MaxCost || l.Params.Algorithm != other.Params.Algorithm {
		return false
	}
	if l.Params.Algorithm != bucket.AlgorithmTokenBucket && (l.Params.Period != other.Params.Period || l.Rate.Calendar != other.Rate.Calendar) {
		return false
	}
	return other.hasLevelOf(l) && other.within(l) && admitsMore(other, l) && !admitsMore(l, other)
}

// hasLevelOf reports whether l counts by all that other counts by.
func (l *Limit) hasLevelOf(other *Limit) bool {
	own := l.Level()
	return !slices.ContainsFunc(other.Level(), func(name string) bool { return !slices.Contains(own, name) })
}

// isTaken reports whether a limit takes the place of l, or exempts from it, for requests that with is for.
func (c *compiler) isTaken(l, with *Limit) bool {
	for _, other := range c.set.Limits {
		if other == l || other.Plan != "" && l.Plan != "" && other.Plan != l.Plan {
			continue
		}
		if (slices.Contains(other.Replaces, l.ID) || takesPlace(other, l)) && canMeet(other, with) {
			return true
		}
	}
	return false
}
