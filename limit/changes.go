package limit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mostChanges bounds the lines of Changes.
const mostChanges = 20

// Changes describes for people how a set differs from the one before it: the limits of plans, the
// shared limits and the overrides that came, went or changed, and tenants of another plan. A set
// that is new on trial is described in place of the one beside which it is tried. Changes returns at
// most mostChanges lines, and one that counts the others.
func Changes(before, after *Set) []string {
	c := changes{}
	if t := after.trial.set; t != nil && (before.trial.set == nil || before.trial.set.Version != t.Version) {
		after = t
	}
	c.compare("shared: ", before.defaultPlan.shared(), after.defaultPlan.shared())
	c.plan("default_plan ", before.defaultPlan, after.defaultPlan)
	for _, plan := range union(before.byPlan, after.byPlan) {
		was, is := before.byPlan[plan], after.byPlan[plan]
		switch {
		case was == nil:
			c.add("plan %s is new", plan)
		case is == nil:
			c.add("plan %s is gone", plan)
		default:
			c.compare("plan "+plan+": ", was.ownLimits(), is.ownLimits())
		}
	}
	c.tenants(before, after)
	if c.more > 0 {
		c.lines = append(c.lines, fmt.Sprintf("and %d more", c.more))
	}
	return c.lines
}

// changes collects the lines of Changes.
type changes struct {
	lines []string
	more  int // lines beyond mostChanges
}

func (c *changes) add(format string, args ...any) {
	if len(c.lines) == mostChanges {
		c.more++
		return
	}
	c.lines = append(c.lines, fmt.Sprintf(format, args...))
}

// tenants compares the tenants, in the order of their names.
func (c *changes) tenants(before, after *Set) {
	names := slices.Collect(func(yield func(string) bool) {
		for tenant, was := range before.tenants.all() {
			is := after.tenants.get(tenant)
			// Most tenants only have a plan, which is compared already.
			if is != nil && was.plan == is.plan && was == before.byPlan[was.plan] && is == after.byPlan[is.plan] {
				continue
			}
			if !yield(tenant) {
				return
			}
		}
		for tenant := range after.tenants.all() {
			if before.tenants.get(tenant) == nil && !yield(tenant) {
				return
			}
		}
	})
	slices.Sort(names)
	for _, tenant := range names {
		was, is := before.tenants.get(tenant), after.tenants.get(tenant)
		switch {
		case was == nil:
			c.add("tenant %s is new", tenant)
		case is == nil:
			c.add("tenant %s is not listed any more", tenant)
		default:
			c.plan("tenant "+tenant+": plan ", was, is)
			c.compare("tenant "+tenant+": ", was.overridden(is), is.overridden(was))
		}
	}
}

// plan adds a line if two rulesets are of different plans.
func (c *changes) plan(what string, was, is *ruleset) {
	if was.plan == is.plan {
		return
	}
	name := func(plan string) string {
		if plan == "" {
			return "none"
		}
		return plan
	}
	c.add("%s%s -> %s", what, name(was.plan), name(is.plan))
}

// compare compares limits by their ids.
func (c *changes) compare(what string, before, after []*Limit) {
	for _, was := range before {
		if is := withID(after, was.ID); is == nil {
			c.add("%s%s %s is gone", what, was.ID, was.Describe())
		} else if all := differences(was, is); len(all) > 0 {
			c.add("%s%s %s", what, was.ID, strings.Join(all, ", "))
		}
	}
	for _, is := range after {
		if withID(before, is.ID) == nil {
			c.add("%s%s %s is new", what, is.ID, is.Describe())
		}
	}
}

// differences describes all differences of two limits.
func differences(was, is *Limit) (all []string) {
	for _, d := range []struct{ name, was, is string }{
		{"mode ", was.DescribeMode(), is.DescribeMode()},
		{"warn ", orNever(was.DescribeWarn()), orNever(is.DescribeWarn())},
		{"", was.Describe(), is.Describe()},
		{"on_error ", was.OnError.String(), is.OnError.String()},
		{"algorithm ", was.Params.Algorithm.String(), is.Params.Algorithm.String()},
	} {
		if d.was != d.is {
			all = append(all, d.name+d.was+" -> "+d.is)
		}
	}
	if was.Lease != is.Lease || !alike(was, is) || len(all) == 0 && was.Params != is.Params {
		all = append(all, "other requests, buckets or options")
	}
	return all
}

func orNever(warn string) string { return cmp.Or(warn, "never") }

// union returns the keys of both maps, in order.
func union[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
