package limit

import (
	"fmt"
	"maps"
	"slices"
)

// mostChanges bounds the lines of Changes.
const mostChanges = 20

// Changes describes for people how a set differs from the one before it: the limits of plans, the
// shared limits and the overrides that came, went or changed, and tenants of another plan. It
// returns at most mostChanges lines, and one that counts the others.
func Changes(before, after *Set) []string {
	c := changes{}
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
	for tenant, was := range before.tenants.all() {
		if is := after.tenants.get(tenant); is == nil {
			c.add("tenant %s is not listed any more", tenant)
		} else if what := "tenant " + tenant; !c.plan(what+": plan ", was, is) {
			c.compare(what+": ", was.overridden(is), is.overridden(was))
		}
	}
	for tenant := range after.tenants.all() {
		if before.tenants.get(tenant) == nil {
			c.add("tenant %s is new", tenant)
		}
	}
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

// plan adds a line and returns true if two rulesets are of different plans.
func (c *changes) plan(what string, was, is *ruleset) bool {
	if was.plan == is.plan {
		return false
	}
	name := func(plan string) string {
		if plan == "" {
			return "none"
		}
		return plan
	}
	c.add("%s%s -> %s", what, name(was.plan), name(is.plan))
	return true
}

// compare compares limits by their ids.
func (c *changes) compare(what string, before, after []*Limit) {
	for _, was := range before {
		is := withID(after, was.ID)
		switch {
		case is == nil:
			c.add("%s%s %s is gone", what, was.ID, was.Describe())
		case was.Describe() != is.Describe():
			c.add("%s%s %s -> %s", what, was.ID, was.Describe(), is.Describe())
		case was.Mode != is.Mode:
			c.add("%s%s %s -> %s", what, was.ID, was.Mode, is.Mode)
		case was.OnError != is.OnError:
			c.add("%s%s on_error %s -> %s", what, was.ID, was.OnError, is.OnError)
		case was.Params != is.Params || was.Lease != is.Lease || !alike(was, is):
			c.add("%s%s changed", what, was.ID)
		}
	}
	for _, is := range after {
		if withID(before, is.ID) == nil {
			c.add("%s%s %s is new", what, is.ID, is.Describe())
		}
	}
}

// union returns the keys of both maps, in order.
func union[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
