package limit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/limitgate/limitgate/limit/bucket"
)

// mostChanges bounds the lines of Changes.
const mostChanges = 20

// mostChangeBytes bounds a line: conditions and lists of ids have any length.
const mostChangeBytes = 400

// Changes describes for people how a set differs from the one before it: the limits of plans, the
// shared limits and the overrides that came, went or changed, and tenants of another plan. A set
// that is new on trial is described in place of the one beside which it is tried. Changes returns at
// most mostChanges lines, and one that counts the others.
func Changes(before, after *Set) []string {
	c := changes{most: mostChanges}
	if t := after.trial.set; t != nil && (before.trial.set == nil || before.trial.set.Version != t.Version) {
		after = t
	}
	c.sets(before, after)
	lines := make([]string, len(c.found))
	for i := range c.found {
		lines[i] = c.found[i].Text
	}
	if c.more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", c.more))
	}
	return lines
}

// Difference is a line of Changes that is about one limit.
type Difference struct {
	Limit    string // its id
	Override bool   // of a tenant
	Text     string
}

// Differences describes how limits of a set differ from those of another one, as Changes does, with
// those of plans and of overriding tenants that came or went one by one. It compares no limits on
// trial. It returns at most the given number of lines, those of overrides last, and the number of the
// others. Pause is called regularly while many tenants are compared, unless it is nil.
func Differences(before, after *Set, most int, pause func()) (lines []Difference, more int) {
	c := changes{most: most, pause: pause, byLimit: true}
	c.sets(before, after)
	return c.found, c.more
}

// changes collects the differences of two sets.
type changes struct {
	most    int
	pause   func()
	byLimit bool // only lines about one limit count
	found   []Difference
	more    int // lines beyond most
}

// add adds a line about a limit; of an empty id it is about none. Tenant is that of an override.
func (c *changes) add(id, tenant, format string, args ...any) {
	switch {
	case c.byLimit && id == "":
	case len(c.found) == c.most:
		c.more++
	default:
		text := fmt.Sprintf(format, args...)
		if len(text) > mostChangeBytes {
			text = strings.ToValidUTF8(text[:mostChangeBytes], "") + "..."
		}
		c.found = append(c.found, Difference{id, tenant != "", text})
	}
}

// sets compares two sets.
func (c *changes) sets(before, after *Set) {
	c.compare("shared: ", "", before.defaultPlan.shared(), after.defaultPlan.shared())
	c.plan("default_plan ", before.defaultPlan, after.defaultPlan)
	for _, plan := range union(before.byPlan, after.byPlan) {
		was, is := before.byPlan[plan], after.byPlan[plan]
		switch {
		case was == nil:
			c.add("", "", "plan %s is new", plan)
			c.each("plan "+plan+": ", "", nil, is.ownLimits())
		case is == nil:
			c.add("", "", "plan %s is gone", plan)
			c.each("plan "+plan+": ", "", was.ownLimits(), nil)
		default:
			c.compare("plan "+plan+": ", "", was.ownLimits(), is.ownLimits())
		}
	}
	c.tenants(before, after)
}

// each compares limits that came or went together. Changes has one line for all of them.
func (c *changes) each(what, tenant string, before, after []*Limit) {
	if c.byLimit {
		c.compare(what, tenant, before, after)
	}
}

// tenants compares the tenants, in the order of their names.
func (c *changes) tenants(before, after *Set) {
	for i, tenant := range c.changedTenants(before, after) {
		c.rest(i)
		was, is, what := before.tenants.get(tenant), after.tenants.get(tenant), "tenant "+tenant+": "
		switch {
		case was == nil:
			c.add("", tenant, "tenant %s is new", tenant)
			c.each(what, tenant, nil, is.overridden(is))
		case is == nil:
			c.add("", tenant, "tenant %s is not listed any more", tenant)
			c.each(what, tenant, was.overridden(was), nil)
		default:
			c.plan(what+"plan ", was, is)
			c.compare(what, tenant, was.overridden(is), is.overridden(was))
		}
	}
}

// changedTenants returns the names of tenants that may have changed, in order.
func (c *changes) changedTenants(before, after *Set) (names []string) {
	n := 0
	for tenant := range after.tenants.differing(before.tenants) {
		n++
		c.rest(n)
		// Most tenants only have a plan, which is compared already.
		was, is := before.tenants.get(tenant), after.tenants.get(tenant)
		if was == nil || is == nil || was.plan != is.plan || was != before.byPlan[was.plan] || is != after.byPlan[is.plan] {
			names = append(names, tenant)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// rest pauses after some tenants.
func (c *changes) rest(tenants int) {
	if c.pause != nil && tenants%pauseEvery == pauseEvery-1 {
		c.pause()
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
	c.add("", "", "%s%s -> %s", what, name(was.plan), name(is.plan))
}

// compare compares limits by their ids.
func (c *changes) compare(what, tenant string, before, after []*Limit) {
	renamed := renamedLimits(before, after)
	for _, was := range before {
		if is := withID(after, was.ID); is == nil && renamed[was] != nil {
			c.add(was.ID, tenant, "%s%s %s", what, was.ID, anew(renamed[was]))
		} else if is == nil {
			c.add(was.ID, tenant, "%s%s %s%s is gone", what, was.ID, was.Describe(), was.unenforced())
		} else if all := differences(was, is); len(all) > 0 {
			c.add(was.ID, tenant, "%s%s %s", what, was.ID, strings.Join(all, ", "))
		}
	}
	known := slices.Collect(maps.Values(renamed))
	for _, is := range after {
		if withID(before, is.ID) == nil && !slices.Contains(known, is) {
			c.add(is.ID, tenant, "%s%s %s%s is new", what, is.ID, is.Describe(), is.unenforced())
		}
	}
}

// mostRenamed bounds the limits of new ids that are compared with those that are gone.
const mostRenamed = 64

// renameKey has what limits have in common of which one may be the other one by another id.
type renameKey struct {
	params bucket.Params
	mode   Mode
	share  int
	group  string
	level  string
}

func (l *Limit) renameKey() renameKey {
	return renameKey{l.Params, l.Mode, l.share, l.Group, strings.Join(l.Level(), ",")}
}

// renamedLimits returns, of the limits that count and are gone, those that another id has now, by the limit that they were.
func renamedLimits(before, after []*Limit) map[*Limit]*Limit {
	was, is := byID(before), byID(after)
	fresh := map[renameKey][]*Limit{}
	n := 0
	for _, l := range after {
		if was[l.ID] == nil && l.Action == ActionLimit && l.Mode != ModeOff {
			key := l.renameKey()
			fresh[key] = append(fresh[key], l)
			n++
		}
	}
	if n == 0 || n > mostRenamed {
		return nil
	}
	renamed := map[*Limit]*Limit{}
	for _, l := range before {
		if is[l.ID] != nil || l.Action != ActionLimit || l.Mode == ModeOff {
			continue
		}
		key := l.renameKey()
		i := slices.IndexFunc(fresh[key], func(f *Limit) bool {
			its := *f
			its.ID = l.ID
			return len(differences(l, &its)) == 0
		})
		if i >= 0 {
			renamed[l] = fresh[key][i]
			fresh[key] = slices.Delete(fresh[key], i, i+1)
		}
	}
	return renamed
}

// anew says that a limit has another id, that of is.
func anew(is *Limit) string { return "is called " + is.ID + " now: its counters begin anew" }

// unenforced names the mode of a limit that is not enforced for all, or is "".
func (l *Limit) unenforced() string {
	if l.EnforcedAlways() {
		return ""
	}
	return ", mode " + l.DescribeMode() + ","
}

// differences describes all differences of two limits.
func differences(was, is *Limit) (all []string) {
	for _, d := range []struct{ name, was, is string }{
		{"mode ", was.DescribeMode(), is.DescribeMode()},
		{"warn ", cmp.Or(was.DescribeWarn(), "never"), cmp.Or(is.DescribeWarn(), "never")},
		{"", was.describeRate(), is.describeRate()},
		{"on_error ", was.OnError.String(), is.OnError.String()},
		{"algorithm ", was.Params.Algorithm.String(), is.Params.Algorithm.String()},
		{"by ", was.describeBy(), is.describeBy()},
		{"when ", was.describeWhen(), is.describeWhen()},
		{"group ", cmp.Or(was.Group, none), cmp.Or(is.Group, none)},
		{"replaces ", orNone(was.Replaces), orNone(is.Replaces)},
		{"missing ", was.Missing.String(), is.Missing.String()},
		{"cost ", units(was.FixedCost), units(is.FixedCost)},
		{"max_cost ", units(was.MaxCost), units(is.MaxCost)},
		{"store ", was.Store.String(), is.Store.String()},
		{"lease ", was.describeLease(), is.describeLease()},
		{"hash of ", orNone(was.hashedDims()), orNone(is.hashedDims())},
	} {
		if d.was != d.is {
			all = append(all, d.name+d.was+" -> "+d.is)
		}
	}
	if was.describeWhen() == is.describeWhen() && !slices.Equal(was.When(), is.When()) {
		all = append(all, "when of other values")
	}
	if len(all) == 0 && was.layer != is.layer {
		to := "is that of the plan again"
		if is.layer == layerOverride {
			to = "is an override now"
		}
		all = append(all, to)
	}
	if len(all) == 0 && (!alike(was, is) || was.Params != is.Params) {
		all = append(all, "other declared values or options")
	}
	return all
}

// none stands for a setting that a limit does not have.
const none = "none"

func orNone(names []string) string { return cmp.Or(strings.Join(names, ", "), none) }

// describeBy returns the dimensions that l counts by, or whose limits it lifts.
func (l *Limit) describeBy() string {
	if l.everyLevel {
		return "every level"
	}
	return orNone(l.Level())
}

// describeWhen returns the conditions of l, with the patterns of tenants and ops alone: the log has no address, and
// other values may be secrets.
func (l *Limit) describeWhen() string {
	var all []string
	for i := range l.when {
		if w := &l.when[i]; w.kind == propertyTenant || w.kind == propertyOp {
			all = append(all, w.describe())
		} else {
			all = append(all, w.name)
		}
	}
	return orNone(all)
}

// units returns the text of a number of units, of which 0 is none.
func units(n int64) string {
	if n == 0 {
		return none
	}
	return strconv.FormatInt(n, 10)
}

func (l *Limit) describeLease() string {
	if !l.Lease.On {
		return none
	}
	return l.Lease.String()
}

// union returns the keys of both maps, in order.
func union[V any](a, b map[string]V) []string {
	all := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(all)
	return slices.Compact(all)
}
