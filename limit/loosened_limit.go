package limit

import (
	"fmt"
	"math/big"
	"reflect"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit/bucket"
)

// loosening describes how a limit admits more, or may, than the one that it was; "" if it does not. Is is nil for a limit that is removed.
func loosening(was, is *Limit) string {
	switch {
	case is == nil && (was.Action == ActionAllow || was.Mode != ModeEnforce):
		return ""
	case is == nil:
		return was.Describe() + " -> none"
	case is.Action == ActionAllow:
		return loosenedAllow(was, is)
	case was.Action == ActionAllow || was.Mode != ModeEnforce:
		return ""
	case is.enforcedIn() < was.enforcedIn():
		return was.DescribeMode() + " -> " + is.DescribeMode()
	case admitsMore(is, was):
		return was.Describe() + " -> " + is.Describe() + otherRequests(was, is)
	case is.OnError == OnErrorOpen && was.OnError != OnErrorOpen:
		return fmt.Sprintf("on_error %s -> %s", was.OnError, is.OnError)
	case !alike(was, is) && !onlyDeniesMissing(is, was) && !onlyDenies(is, was) && !onlyWidens(is, was):
		return "may admit more: " + strings.Join(differences(was, is), ", ")
	}
	return ""
}

// otherRequests returns, behind commas, by which a limit counts other requests than it did, or counts them in other buckets.
func otherRequests(was, is *Limit) (text string) {
	if onlyWidens(is, was) {
		return ""
	}
	for _, d := range differences(was, is) {
		if name, _, _ := strings.Cut(d, " "); slices.Contains([]string{"when", "by", "group", "replaces", "missing"}, name) {
			text += ", " + d
		}
	}
	return text
}

// loosenedAllow is loosening for a limit that allows now.
func loosenedAllow(was, is *Limit) string {
	narrower := *is
	narrower.when = was.when
	isWithin := is.within(was) && hasDeclared(was.when, is.when)
	switch {
	case is.Mode != ModeEnforce && (was.Action == ActionAllow || was.Mode != ModeEnforce):
		return ""
	case is.Mode != ModeEnforce: // it neither counts nor allows
		return was.DescribeMode() + " -> " + is.DescribeMode()
	case was.Action != ActionAllow:
		return was.Describe() + " -> allow"
	case is.enforcedIn() > was.enforcedIn():
		return was.DescribeMode() + " -> " + is.DescribeMode()
	case was.everyLevel && isWithin: // it lifts some of the limits that it lifted; of bans places has lines
	case !alike(was, is) && !(alike(was, &narrower) && isWithin):
		return "may admit more: " + strings.Join(differences(was, is), ", ")
	}
	return ""
}

// alike reports whether two limits count the same requests in the same buckets.
func alike(a, b *Limit) bool {
	return a.byTenant == b.byTenant && a.everyLevel == b.everyLevel && a.Group == b.Group && a.Action == b.Action && a.Missing == b.Missing && a.Store == b.Store &&
		a.Params.Algorithm == b.Params.Algorithm && reflect.DeepEqual(a.by, b.by) && reflect.DeepEqual(a.when, b.when) && slices.Equal(a.Replaces, b.Replaces)
}

// onlyDeniesMissing reports whether a limit differs in the requests that it counts from what it was by denying those without its dimensions.
func onlyDeniesMissing(is, was *Limit) bool {
	before := *was
	before.Missing = is.Missing
	return is.Missing == MissingDeny && alike(&before, is)
}

// onlyDenies reports whether a limit denies the requests that it counted as it was.
func onlyDenies(is, was *Limit) bool {
	before := *was
	before.Action, before.Store, before.Replaces, before.Params.Algorithm = is.Action, is.Store, is.Replaces, is.Params.Algorithm
	return is.Action == ActionDeny && alike(&before, is)
}

// onlyWidens reports whether a limit differs from what it was in nothing but that it is for more requests, with those that it was for: of limits
// that apply in its place from then on, and of those whose place it takes, places has lines.
func onlyWidens(is, was *Limit) bool {
	before := *was
	before.when = is.when
	return alike(&before, is) && was.within(is) && hasDeclared(is.when, was.when)
}

// hasDeclared reports whether conditions hold for all declared values, of the dimensions that both have, for which others hold.
func hasDeclared(wide, narrow []condition) bool {
	return !slices.ContainsFunc(narrow, func(n condition) bool {
		return slices.ContainsFunc(wide, func(w condition) bool { return w.name == n.name && !w.declares(&n) })
	})
}

// declares reports whether the declared values of a condition have those for which another one holds. None are all values.
func (c *condition) declares(of *condition) bool {
	if c.values == nil || of.values == nil {
		return c.values == nil
	}
	for value := range of.values {
		if conditionMatches(of, value) && !c.values[value] {
			return false
		}
	}
	return true
}

// onlyCountsBeside reports whether a limit differs from what it was in nothing but that it replaces fewer of all limits, each of which
// counts now without an effect on others, or in what it replaces anyway, as the more specific one of a group.
func onlyCountsBeside(is, was *Limit, all []*Limit) bool {
	before := *was
	before.Replaces = is.Replaces
	if !alike(&before, is) || was.Action != ActionLimit {
		return false
	}
	for _, l := range all {
		removed, added := slices.Contains(was.Replaces, l.ID) && !slices.Contains(is.Replaces, l.ID), slices.Contains(is.Replaces, l.ID) && !slices.Contains(was.Replaces, l.ID)
		anyway := l.groupKey() == is.groupKey() && takesPlace(is, l)
		if (removed || added) && !anyway && (added || l.Action == ActionAllow || len(l.Replaces) > 0 || !aloneInGroup(l, all)) {
			return false
		}
	}
	return true
}

// aloneInGroup reports whether all have no other limit of the group of l.
func aloneInGroup(l *Limit, all []*Limit) bool {
	return !slices.ContainsFunc(all, func(o *Limit) bool { return o != l && o.groupKey() == l.groupKey() })
}

// admitsMore reports whether a limit has a higher rate or capacity than it had, or may have, for the cost of a request.
func admitsMore(is, was *Limit) bool {
	cost, before := is.FixedCost, was.FixedCost
	switch {
	case (cost == 0) != (before == 0):
		return true // by the cost of the request
	case cost == 0 && was.MaxCost > 0 && (is.MaxCost == 0 || is.MaxCost > was.MaxCost):
		return true
	}
	cost, before = max(cost, 1), max(before, 1)
	rate := func(p, over *bucket.Params, cost int64) *big.Int {
		return new(big.Int).Mul(new(big.Int).Mul(big.NewInt(p.Count), big.NewInt(over.Period)), big.NewInt(cost))
	}
	return is.Params.Capacity/cost > was.Params.Capacity/before ||
		rate(&is.Params, &was.Params, before).Cmp(rate(&was.Params, &is.Params, cost)) > 0
}
