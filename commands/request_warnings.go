package commands

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// maxLacking bounds the warnings about dimensions for want of which no limit applies to a request.
const maxLacking = 3

// tenantWarnings returns whether a tenant is most likely another spelling of one that the limits list. MayUse reports whether the caller may
// learn of a tenant.
func tenantWarnings(tenant string, set *limit.Set, mayUse func(tenant string) bool) []string {
	if listed := set.ListedAs(tenant, mayUse); listed != "" {
		return []string{fmt.Sprintf("tenant %s is not listed; did you mean %s, which has limits of its own?", limit.Quote(tenant), limit.Quote(listed))}
	}
	if near := set.ListedNear(tenant, mayUse); near != "" {
		return []string{fmt.Sprintf("tenant %s is not listed; did you mean %s?", limit.Quote(tenant), limit.Quote(near))}
	}
	return nil
}

// RequestWarnings returns what is most likely a mistake in a valid request, by the limits that decide about it: a
// tenant and an op or ip that are swapped, a tenant or an op in another spelling than the limits have, a dimension
// that no limit of the tenant uses, and one for want of which no limit applies. MayUse reports whether the caller may learn
// of a tenant. The sentences have names of the request in quotes.
func RequestWarnings(req *limit.Request, set *limit.Set, mayUse func(tenant string) bool) (warnings []string) {
	limits := set.TenantLimits(req.Tenant)
	uses := func(name string) bool {
		return slices.ContainsFunc(limits, func(l *limit.Limit) bool { return l.UsesDim(name) })
	}
	if Swapped(req) {
		warnings = append(warnings, SwappedText)
	}
	if uses("ip") && AddressFirst(req) {
		warnings = append(warnings, AddressFirstText)
	}
	if AddressAsOp(req) {
		warnings = append(warnings, AddressAsOpText)
	}
	warnings = append(warnings, tenantWarnings(req.Tenant, set, mayUse)...)
	var ops []limit.OpUse
	for _, l := range limits {
		ops = append(ops, l.OpUse())
	}
	if s, found := limit.SpellingOf(req.Op, ops); found {
		warnings = append(warnings, fmt.Sprintf("limits take the op %s for another one than %s: %s", limit.Quote(req.Op), limit.Quote(s.Meant), s.Reason))
	}
	for _, v := range limit.ValueSpellings(req, limits) {
		value, _ := req.Dimension(v.Dim)
		warnings = append(warnings, fmt.Sprintf("limits take the %s %s for another one than %s: %s", v.Dim, limit.Quote(value), limit.Quote(v.Meant), v.Reason))
	}
	used := slices.DeleteFunc(slices.Clone(set.Dims()), func(name string) bool { return !uses(name) })
	for _, d := range req.Dims {
		if !uses(d.Name) && d.Name != limit.TraceDim {
			warnings = append(warnings, fmt.Sprintf("no limit of tenant %s uses the dimension %s%s", limit.Quote(req.Tenant), limit.Quote(d.Name), limit.DidYouMean(d.Name, used)))
		}
	}
	return append(warnings, lackingWarnings(req, set)...)
}

// lackingWarnings returns a sentence for each dimension, or the slot, for want of which no limit applies to a request. Limits that lack
// fewer come first, and one that lacks those of another and more is not named.
func lackingWarnings(req *limit.Request, set *limit.Set) (warnings []string) {
	unmet, _ := set.Unmet(req)
	lacks := make([][]string, len(unmet))
	order := make([]int, len(unmet))
	for i, u := range unmet {
		if order[i] = i; u.Dim != "" {
			lacks[i] = u.Limit.LacksAll(req)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(max(1, len(lacks[a])), max(1, len(lacks[b]))) })
	var named [][]string
	for _, i := range order {
		if len(named) == maxLacking {
			break
		}
		if slices.ContainsFunc(named, func(fewer []string) bool { return containsAll(lacks[i], fewer) }) {
			continue
		}
		named = append(named, lacks[i])
		if len(lacks[i]) == 0 {
			warnings = append(warnings, fmt.Sprintf("no limit applies: limit %s counts slots, which only RL.ACQUIRE takes", unmet[i].Limit.ID))
			continue
		}
		var dims []string
		for _, dim := range lacks[i] {
			dims = append(dims, dimText(dim))
		}
		warnings = append(warnings, fmt.Sprintf("no limit applies: the request has no %s, which limit %s needs", strings.Join(dims, " and no "), unmet[i].Limit.ID))
	}
	return warnings
}

// containsAll reports whether all has each of some. An empty list is in an empty one alone.
func containsAll(all, some []string) bool {
	if len(some) == 0 {
		return len(all) == 0
	}
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}

// dimText names a dimension, or a chain of them, as a command has it.
func dimText(dim string) string {
	names := strings.Split(dim, "|")
	if !slices.ContainsFunc(names, limit.ReservedDim) {
		names[0] = "DIM " + names[0]
	}
	return strings.Join(names, " or ")
}
